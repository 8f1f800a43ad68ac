// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.pool;

import dev.temper.pathfence.Call;
import dev.temper.pathfence.Fence;
import dev.temper.pathfence.Outcome;
import dev.temper.pathfence.PathContext;
import dev.temper.pathfence.Permit;
import dev.temper.pathfence.Serving;
import dev.temper.pathfence.ShedException;
import java.io.PrintWriter;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.SQLFeatureNotSupportedException;
import java.sql.SQLNonTransientConnectionException;
import java.util.logging.Logger;
import javax.sql.DataSource;

/**
 * A fence before a pool of connections, which is where paths meet when threads are many: with virtual threads, say. The
 * fence has as many workers as the pool has connections. Who waits for one waits in the fence, not in the pool; the
 * class is that of the request that the thread serves ({@link Serving}), and so is the deadline.
 *
 * <p>What is to be closed is the connection that came from here: the one that a statement or its metadata names
 * ({@code getConnection()}) is the pool's own, and to close only that leaves the permit out.
 */
public final class FencedDataSource implements DataSource {
    private final DataSource pool;
    private final Fence fence;
    private final String edge;

    /**
     * Puts a fence before a pool.
     *
     * @param pool the pool, HikariCP's or another
     * @param fence as many workers as the pool has connections; it must stay open as long as the pool
     * @param edge the pool's name as a downstream edge of the service
     */
    public FencedDataSource(DataSource pool, Fence fence, String edge) {
        this.pool = pool;
        this.fence = fence;
        this.edge = edge;
    }

    private interface Source {
        Connection connect() throws SQLException;
    }

    /**
     * Waits for a connection.
     *
     * @return it; its close() gives it back
     * @throws SQLNonTransientConnectionException with {@code pf-shed: reason} if it is refused: a retry helps nobody
     * @throws SQLException what the pool throws, or if the thread is interrupted
     */
    @Override
    public Connection getConnection() throws SQLException {
        return fenced(pool::getConnection);
    }

    @Override
    public Connection getConnection(String user, String password) throws SQLException {
        return fenced(() -> pool.getConnection(user, password));
    }

    private Connection fenced(Source source) throws SQLException {
        Permit permit = permit();
        // The pool may be seen by itself, by another name.
        try (Serving.Scope call = Serving.within()) {
            return closing(source.connect(), permit);
        } catch (SQLException | RuntimeException | Error e) {
            permit.release(Outcome.FAIL);
            throw e;
        }
    }

    private Permit permit() throws SQLException {
        PathContext context = Serving.calls(edge);
        try {
            return fence.acquire(new Call(context.path(), context.timeout(), 0));
        } catch (ShedException e) {
            throw new SQLNonTransientConnectionException(e.getMessage(), "08004", e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new SQLException("interrupted while waiting for a connection", e);
        }
    }

    /** The connection, which gives its permit back when it is closed or aborted. */
    private static Connection closing(Connection inner, Permit permit) {
        return (Connection) Proxy.newProxyInstance(
                FencedDataSource.class.getClassLoader(), new Class<?>[] {Connection.class}, (proxy, method, arguments) -> {
                    String name = method.getName();
                    if (name.equals("equals")) return proxy == arguments[0];
                    boolean same = name.equals("unwrap") && arguments[0] instanceof Class<?> c && c.isInstance(proxy);
                    if (same) return proxy; // the pool's own would go back without the permit
                    try {
                        return method.invoke(inner, arguments);
                    } catch (InvocationTargetException e) {
                        throw e.getCause();
                    } finally {
                        if (name.equals("close")) permit.release(Outcome.OK);
                        if (name.equals("abort")) permit.release(Outcome.CANCEL);
                    }
                });
    }

    @Override
    public PrintWriter getLogWriter() throws SQLException {
        return pool.getLogWriter();
    }

    @Override
    public void setLogWriter(PrintWriter out) throws SQLException {
        pool.setLogWriter(out);
    }

    @Override
    public void setLoginTimeout(int seconds) throws SQLException {
        pool.setLoginTimeout(seconds);
    }

    @Override
    public int getLoginTimeout() throws SQLException {
        return pool.getLoginTimeout();
    }

    @Override
    public Logger getParentLogger() throws SQLFeatureNotSupportedException {
        return pool.getParentLogger();
    }

    @Override
    public <T> T unwrap(Class<T> type) throws SQLException {
        return type.isInstance(pool) ? type.cast(pool) : pool.unwrap(type);
    }

    @Override
    public boolean isWrapperFor(Class<?> type) throws SQLException {
        return type.isInstance(pool) || pool.isWrapperFor(type);
    }
}
