// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.spring;

import dev.temper.pathfence.ClassConfig;
import dev.temper.pathfence.Config;
import dev.temper.pathfence.Fence;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.binder.MeterBinder;
import io.micrometer.core.instrument.config.MeterFilter;
import io.micrometer.core.instrument.composite.CompositeMeterRegistry;
import io.micrometer.observation.ObservationRegistry;
import jakarta.servlet.DispatcherType;
import jakarta.servlet.Servlet;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.slf4j.MDC;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.SmartInitializingSingleton;
import org.springframework.boot.actuate.endpoint.annotation.Endpoint;
import org.springframework.boot.actuate.endpoint.web.PathMappedEndpoints;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnProperty;
import org.springframework.boot.autoconfigure.condition.ConditionalOnWebApplication;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.springframework.context.ApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.core.Ordered;
import org.springframework.core.env.Environment;
import org.springframework.http.server.observation.DefaultServerRequestObservationConvention;
import org.springframework.http.server.observation.ServerRequestObservationConvention;
import org.springframework.util.function.SingletonSupplier;
import org.springframework.web.cors.CorsConfigurationSource;
import org.springframework.web.filter.ServerHttpObservationFilter;
import org.springframework.web.servlet.HandlerMapping;
import org.springframework.web.servlet.mvc.method.annotation.RequestMappingHandlerMapping;

/** Puts a fence before the server's workers, unless {@code pathfence.enabled} is false. */
@AutoConfiguration
@ConditionalOnProperty(name = "pathfence.enabled", matchIfMissing = true)
@EnableConfigurationProperties(PathfenceProperties.class)
@Import({Boot.RestClients.class, Boot.WebClients.class})
public class PathfenceAutoConfiguration {
    private static final System.Logger LOG = System.getLogger(PathfenceAutoConfiguration.class.getName());
    private static final String OBSERVATIONS = "management.observations.http.server.requests.name";
    private static final int SERVER_THREADS = 200; // what Tomcat and Jetty have if nobody says

    /** For the container. */
    public PathfenceAutoConfiguration() {}

    /**
     * The fence.
     *
     * @param properties what is set
     * @param environment says how many threads the server has
     * @return the fence
     */
    @Bean(destroyMethod = "close")
    @ConditionalOnMissingBean
    public Fence pathfence(PathfenceProperties properties, Environment environment) {
        int threads = threads(environment);
        Config config = properties.config(workersFor(threads));
        boolean virtual = environment.getProperty("spring.threads.virtual.enabled", Boolean.class, false);
        boolean said = properties.workers() != 0 || properties.config() != null;
        if (virtual && !said) tellUnsaid(config.workers());
        if (config.workers() >= threads && !virtual) tellFewThreads(config.workers(), threads);
        tellStart(config, threads, virtual);
        Fence.Builder b = Fence.builder(config).unbounded(); // off, it is the server that bounds
        if (properties.config() != null) b.watch(properties.config(), PathfenceAutoConfiguration::tell);
        return b.build();
    }

    @Bean
    Within pathfenceWithin() {
        return new Within();
    }

    @Bean
    Outgoing pathfenceOutgoing(PathfenceProperties properties, Within within) {
        return new Outgoing(new Edges(properties.edges()), new Peers(properties.peers()), within);
    }

    private static int threads(Environment environment) {
        return Stream.of("tomcat", "jetty")
                .map(server -> environment.getProperty("server." + server + ".threads.max", Integer.class))
                .filter(Objects::nonNull)
                .min(Integer::compare)
                .orElse(SERVER_THREADS);
    }

    /** Fewer than there are threads: some must be left to take requests in and to refuse them. */
    private static long workersFor(int threads) {
        return Math.max(1, threads * 3L / 4);
    }

    private static void tellStart(Config config, int threads, boolean virtual) {
        String classes = config.classes().stream().map(ClassConfig::name).collect(Collectors.joining(", "));
        LOG.log(
                System.Logger.Level.INFO,
                "PathFence" + (config.off() ? ", switched off" : "") + ": " + config.workers() + " requests at once"
                        + (virtual ? "" : " on " + threads + " threads") + ", target " + config.target() / 1_000_000
                        + " ms, " + (classes.isEmpty() ? "all classes are learned" : "classes " + classes));
    }

    private static void tellUnsaid(long workers) {
        LOG.log(
                System.Logger.Level.WARNING,
                "PathFence serves " + workers + " requests at once, three quarters of threads that are not used, since"
                        + " there are virtual ones. Set pathfence.workers to as many as the service can do at once.");
    }

    private static void tellFewThreads(long workers, int threads) {
        LOG.log(
                System.Logger.Level.WARNING,
                "PathFence has " + workers + " workers, and the server " + threads + " threads: requests will wait for a"
                        + " thread, where the fence does not see them. Set pathfence.workers to " + workersFor(threads)
                        + ", or server.tomcat.threads.max (Jetty: server.jetty.threads.max) to more.");
    }

    private static void tell(Optional<String> error) {
        error.ifPresentOrElse(
                e -> LOG.log(System.Logger.Level.ERROR, "the configuration stays as it was: " + e),
                () -> LOG.log(System.Logger.Level.INFO, "the configuration's file is in force"));
    }

    /** Servlets. */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnWebApplication(type = ConditionalOnWebApplication.Type.SERVLET)
    @ConditionalOnClass({Servlet.class, FilterRegistrationBean.class})
    @Import({Boot.InTomcat.class, Boot.InJetty.class})
    static class Servlets {
        @Bean
        Admission pathfenceAdmission(
                Fence fence,
                Within within,
                PathfenceProperties properties,
                ObjectProvider<RequestKeys> keys,
                ObjectProvider<EndpointPaths> endpoints,
                ObjectProvider<FenceListener> listeners) {
            // At the first request: a bean of the application's may need the server, before which this is made.
            Supplier<RequestKeys> all = SingletonSupplier.of(
                    () -> keys.getIfAvailable(() -> new RouteKeys(properties.routes(), request -> "")));
            return new Admission(
                    fence,
                    request -> all.get().key(request),
                    within,
                    properties.service(),
                    properties.trusted(),
                    () -> {
                        List<String> exempt = new ArrayList<>(properties.exempt());
                        endpoints.ifAvailable(e -> exempt.addAll(e.patterns()));
                        return exempt;
                    },
                    listeners.orderedStream().toList());
        }

        @Bean
        Refusals pathfenceRefusals(
                ObjectProvider<RefusedResponse> response,
                ObjectProvider<CorsConfigurationSource> cors,
                ObjectProvider<MvcCors> mvc) {
            Supplier<RefusedResponse> writer = SingletonSupplier.of(() -> response.getIfAvailable(() -> Refusals.EMPTY));
            return new Refusals(
                    (request, out, refusal) -> writer.get().write(request, out, refusal),
                    SingletonSupplier.of(() -> Stream.concat(
                                    cors.orderedStream(), mvc.stream().flatMap(MvcCors::sources))
                            .toList()));
        }

        @Bean
        RefusalLog pathfenceRefusalLog() {
            return new RefusalLog(System::nanoTime, line -> LOG.log(System.Logger.Level.WARNING, line));
        }

        @Bean
        FilterRegistrationBean<FenceFilter> pathfenceFilter(
                Admission admission, Refusals refusals, ApplicationContext context) {
            FilterRegistrationBean<FenceFilter> bean = new FilterRegistrationBean<>(
                    new FenceFilter(admission, refusals, Boot.hasServer(context)));
            bean.setDispatcherTypes(EnumSet.of(DispatcherType.REQUEST, DispatcherType.ASYNC));
            bean.setAsyncSupported(true);
            bean.setOrder(Ordered.HIGHEST_PRECEDENCE);
            return bean;
        }

        /** After the fence's, since it is that which knows. */
        @Bean
        @ConditionalOnClass(MDC.class)
        @ConditionalOnProperty(prefix = "pathfence", name = "mdc", havingValue = "true")
        FilterRegistrationBean<LogContext> pathfenceLogContext() {
            FilterRegistrationBean<LogContext> bean = new FilterRegistrationBean<>(new LogContext());
            bean.setDispatcherTypes(EnumSet.of(DispatcherType.REQUEST, DispatcherType.ASYNC));
            bean.setAsyncSupported(true);
            bean.setOrder(Ordered.HIGHEST_PRECEDENCE + 1);
            return bean;
        }

        /** Spring MVC. */
        @Configuration(proxyBeanMethods = false)
        @ConditionalOnClass(RequestMappingHandlerMapping.class)
        static class Mvc {
            @Bean
            @ConditionalOnMissingBean
            RequestKeys pathfenceKeys(PathfenceProperties properties, ObjectProvider<HandlerMapping> mappings) {
                return new RouteKeys(properties.routes(), new MappingKeys(mappings));
            }

            /** Before the first request comes. */
            @Bean
            SmartInitializingSingleton pathfenceKeysCheck(ObjectProvider<HandlerMapping> mappings) {
                return new MappingKeys(mappings)::check;
            }

            @Bean
            MvcCors pathfenceCors(ObjectProvider<HandlerMapping> mappings) {
                return new MvcCors(mappings);
            }

            @Bean
            RequestObservations pathfenceRequestObservations(
                    ObjectProvider<ObservationRegistry> registry,
                    ObjectProvider<ServerHttpObservationFilter> filters,
                    ObjectProvider<FilterRegistrationBean<ServerHttpObservationFilter>> registered,
                    ObjectProvider<ServerRequestObservationConvention> convention,
                    ObjectProvider<HandlerMapping> mappings,
                    Environment environment) {
                Supplier<ServerRequestObservationConvention> usual =
                        () -> new DefaultServerRequestObservationConvention(
                                environment.getProperty(OBSERVATIONS, "http.server.requests"));
                return new RequestObservations(
                        SingletonSupplier.of(() -> Stream.concat(filters.stream(), registered.stream())
                                        .findAny()
                                        .isPresent()
                                ? registry.getIfUnique(() -> ObservationRegistry.NOOP)
                                : ObservationRegistry.NOOP),
                        convention.getIfAvailable(usual),
                        new MappingKeys(mappings)::pattern);
            }
        }
    }

    /** Micrometer. */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnClass(MeterBinder.class)
    static class Metrics {
        @Bean
        MeterBinder pathfenceMetrics(Fence fence) {
            return new FenceMetrics(fence);
        }

        /** Micrometer counts the events that spans have, with the tags of requests that are not over yet: no status, no path. */
        @Bean
        MeterFilter pathfenceEvents() {
            return MeterFilter.deny(id -> id.getName().endsWith("." + RequestObservations.GRANTED)
                    || id.getName().endsWith("." + RequestObservations.REFUSED));
        }

        @Bean
        @ConditionalOnClass(Servlet.class)
        WaitTimers pathfenceWaitTimers(ObjectProvider<MeterRegistry> registry) {
            return new WaitTimers(SingletonSupplier.of(() -> registry.getIfUnique(CompositeMeterRegistry::new)));
        }
    }

    /** Actuator. */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnClass(Endpoint.class)
    static class Actuator {
        @Bean
        @ConditionalOnMissingBean
        FenceEndpoint pathfenceEndpoint(Fence fence) {
            return new FenceEndpoint(fence);
        }

        @Bean
        EndpointPaths pathfenceEndpointPaths(ObjectProvider<PathMappedEndpoints> endpoints, Environment environment) {
            return new EndpointPaths(endpoints, environment.getProperty("spring.mvc.servlet.path", ""));
        }
    }
}
