// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.spring;

import dev.temper.pathfence.Serving;
import dev.temper.pathfence.internal.Names;
import javax.sql.DataSource;
import org.aopalliance.intercept.MethodInterceptor;
import org.aopalliance.intercept.MethodInvocation;
import org.springframework.aop.ProxyMethodInvocation;
import org.springframework.util.ClassUtils;
import org.springframework.util.ReflectionUtils;

/**
 * A data source that tells the fence of itself where a connection is asked for. Whatever a request does with JDBC begins
 * there, and so does the wait for a connection of an exhausted pool. Connections and statements are the driver's own.
 */
final class SeenDataSource {
    /** It tells of itself. */
    private static final String FENCED = "dev.temper.pathfence.pool.FencedDataSource";
    /** It only chooses: the one that it chooses tells. */
    private static final Class<?> ROUTING = known("org.springframework.jdbc.datasource.lookup.AbstractRoutingDataSource");

    private SeenDataSource() {}

    private static Class<?> known(String name) {
        ClassLoader loader = SeenDataSource.class.getClassLoader();
        return ClassUtils.isPresent(name, loader) ? ClassUtils.resolveClassName(name, loader) : null;
    }

    /**
     * Sees to a data source.
     *
     * @param source the data source
     * @param edge its name
     * @return what takes its place, of the same class; itself where that cannot be extended
     */
    static DataSource of(DataSource source, String edge) {
        if (!Names.valid(edge) || source.getClass().getName().equals(FENCED)) return source;
        if (ROUTING != null && ROUTING.isInstance(source)) return source;
        return StandIn.of(source, new Telling(source, edge)).orElse(source); // better unseen than not there
    }

    /** Tells of the edge. */
    private static final class Telling implements MethodInterceptor {
        private final DataSource source;
        private final String edge;
        private volatile boolean alike;

        Telling(DataSource source, String edge) {
            this.source = source;
            this.edge = edge;
        }

        @Override
        public Object invoke(MethodInvocation call) throws Throwable {
            if (!call.getMethod().getName().equals("getConnection")) return call.proceed();
            try (Serving.Scope waiting = Serving.calling(edge)) {
                return call.proceed();
            } finally {
                if (!alike) makeAlike(((ProxyMethodInvocation) call).getProxy());
            }
        }

        /**
         * Gives the proxy the pool's fields, once there is a pool. Spring Boot's metrics of pools look at HikariCP's by
         * reflection, and find the proxy's.
         */
        private void makeAlike(Object proxy) {
            alike = true;
            try {
                ReflectionUtils.shallowCopyFieldState(source, proxy);
            } catch (RuntimeException e) {
                // A module that opens nothing: who looks at its fields sees none, with this proxy or without.
            }
        }
    }
}
