// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.pool;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import dev.temper.pathfence.Call;
import dev.temper.pathfence.ClassConfig;
import dev.temper.pathfence.Config;
import dev.temper.pathfence.Fence;
import dev.temper.pathfence.Outcome;
import dev.temper.pathfence.PathContext;
import dev.temper.pathfence.Permit;
import dev.temper.pathfence.Serving;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.SQLNonTransientConnectionException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import org.h2.jdbc.JdbcConnection;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** HikariCP over an embedded database. */
@Timeout(120)
class PoolTest {
    private static final int CONNECTIONS = 4;

    private final Fence service = Fence.of(Config.builder(64)
            .target(60_000_000_000L)
            .add(ClassConfig.of("slow", "slow"))
            .add(ClassConfig.of("fast", "fast"))
            .build());
    private final Fence fence = Fence.of(Config.builder(CONNECTIONS)
            .target(60_000_000_000L)
            .add(ClassConfig.of("slow", "slow"))
            .add(ClassConfig.of("fast", "fast"))
            .build());
    private final HikariDataSource pool = new HikariDataSource(hikari());
    private final FencedDataSource fenced = new FencedDataSource(pool, fence, "database");

    private static HikariConfig hikari() {
        HikariConfig c = new HikariConfig();
        c.setJdbcUrl("jdbc:h2:mem:pathfence");
        c.setMaximumPoolSize(CONNECTIONS);
        return c;
    }

    @AfterEach
    void stop() {
        assertEquals(0, fence.inFlight() + fence.waiting());
        pool.close();
        fence.close();
        service.close();
    }

    private interface Query {
        String on(Connection c) throws Exception;
    }

    /** Serves a request that needs a connection, on a thread of its own. */
    private FutureTask<String> serve(String key, long timeout, Query query) {
        FutureTask<String> t = new FutureTask<>(() -> {
            Permit p = service.acquire(Call.of(key));
            try (Serving.Scope s =
                    new Serving(p, new PathContext(key, timeout, ""), "", System.nanoTime()).enter()) {
                try (Connection c = fenced.getConnection()) {
                    return query.on(c);
                }
            } finally {
                p.release(Outcome.OK);
            }
        });
        new Thread(t).start();
        return t;
    }

    private static String one(Connection c) throws SQLException {
        try (Statement s = c.createStatement();
                ResultSet r = s.executeQuery("select 1")) {
            r.next();
            return r.getString(1);
        }
    }

    @Test
    void aSlowPathDoesNotTakeTheConnectionsOfTheFastOne() throws Exception {
        CountDownLatch open = new CountDownLatch(1);
        List<FutureTask<String>> slow = new ArrayList<>();
        for (int i = 0; i < 12; i++)
            slow.add(serve("slow", 0, c -> {
                open.await();
                return one(c);
            }));
        while (fence.inFlight() + fence.waiting() != 12) Thread.onSpinWait();
        assertTrue(fence.inFlight() < CONNECTIONS, fence.inFlight() + " connections taken");
        // Those that wait do so in the fence; the pool may still be connecting for those that do not.
        while (pool.getHikariPoolMXBean().getThreadsAwaitingConnection() != 0) Thread.onSpinWait();
        for (int i = 0; i < 12; i++) assertEquals("1", serve("fast", 0, PoolTest::one).get());
        open.countDown();
        for (FutureTask<String> s : slow) assertEquals("1", s.get());
        assertEquals(12, fence.state("slow").orElseThrow().granted());
        assertEquals(12, fence.state("fast").orElseThrow().granted());
    }

    @Test
    void whoCannotBeInTimeIsRefused() throws Exception {
        fence.reload(Config.builder(1).build());
        try (Connection held = fenced.getConnection()) {
            FutureTask<String> late = serve("fast", 30_000_000, PoolTest::one);
            ExecutionException e = assertThrows(ExecutionException.class, late::get);
            SQLNonTransientConnectionException shed = (SQLNonTransientConnectionException) e.getCause();
            assertEquals("pf-shed: expired", shed.getMessage());
            assertTrue(held.isValid(1));
        }
    }

    @Test
    void connectionsGiveTheirPermitBackOnce() throws Exception {
        Connection first = fenced.getConnection();
        assertEquals(first, first);
        assertEquals(1, fence.inFlight());
        first.close();
        Connection second = fenced.getConnection();
        assertNotSame(first, second);
        first.close();
        assertEquals(1, fence.inFlight());
        second.abort(Runnable::run);
        assertEquals(0, fence.inFlight());
        assertTrue(fenced.isWrapperFor(HikariDataSource.class));
        assertEquals(pool, fenced.unwrap(HikariDataSource.class));
        pool.close();
        assertThrows(SQLException.class, fenced::getConnection);
        assertEquals(1, fence.states().stream().mapToLong(s -> s.failed()).sum());
    }

    @Test
    void aConnectionThatIsUnwrappedGivesItsPermitBack() throws Exception {
        Connection c = fenced.getConnection();
        assertTrue(c.isWrapperFor(Connection.class));
        c.unwrap(Connection.class).close();
        assertEquals(0, fence.inFlight());
        assertTrue(c.isClosed());
        try (Connection other = fenced.getConnection()) {
            assertEquals("PUBLIC", other.unwrap(JdbcConnection.class).getSchema(), "the driver's own");
        }
    }
}
