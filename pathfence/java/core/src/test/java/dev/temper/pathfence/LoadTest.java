// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Many threads at once while an operator changes the configuration; and a flood of keys that nobody knows. */
@Timeout(300)
class LoadTest {
    private static final long MS = 1_000_000;
    private static final long MOST_WORKERS = 16;

    private final AtomicLong held = new AtomicLong();
    private final AtomicLong most = new AtomicLong();
    private volatile boolean over;

    /** What a client got. */
    private record Got(long served, long refused) {}

    /** Of more or fewer workers, with classes that come, go and change. */
    private static Config version(int n) {
        Config.Builder c = Config.builder(1 + n * 5 % MOST_WORKERS).queueMax(n % 3 == 0 ? 2 : 1024);
        for (int i = 0; i < n % 5; i++) {
            String name = String.valueOf((char) ('a' + (n + i) % 5));
            c.add(new ClassConfig(name, List.of(name), 1 + n * 37 % 1000, 0, 0, 0));
        }
        return c.build();
    }

    /** Asks for permits, holds each for some time or gives it to a part of its request, and gives it back. */
    private Callable<Got> client(Fence fence, int seed) {
        return () -> {
            long served = 0;
            long refused = 0;
            for (int i = seed; !over; i += 7) {
                Call call = new Call(String.valueOf((char) ('a' + i % 7)), i % 4 == 0 ? MS : 0, 0);
                try {
                    serve(fence.acquire(call), i);
                    served++;
                } catch (ShedException e) {
                    refused++;
                }
            }
            return new Got(served, refused);
        };
    }

    private void serve(Permit whole, int i) {
        most.accumulateAndGet(held.incrementAndGet(), Math::max);
        Permit last = whole;
        if (i % 3 == 0) {
            last = whole.share();
            whole.release(Outcome.OK);
        }
        last.edge(i % 2 == 0 ? "store" : "edge" + i % 11); // while others look at the class's
        for (int n = i % 5; n > 0; n--) Thread.yield();
        held.decrementAndGet();
        last.release(Outcome.OK);
    }

    @Test
    void reloadUnderLoad() throws Exception {
        try (Fence fence = Fence.of(version(0))) {
            ExecutorService threads = Executors.newFixedThreadPool(24);
            List<Future<Got>> clients = new ArrayList<>();
            for (int i = 0; i < 24; i++) clients.add(threads.submit(client(fence, i)));
            for (int n = 1; n <= 500; n++) {
                while (fence.inFlight() == 0) {
                    Thread.onSpinWait();
                    if (Thread.interrupted()) throw new InterruptedException("nothing is in flight any more");
                }
                if (n % 50 == 0) fence.off(n % 100 == 0);
                fence.reload(version(n));
            }
            over = true;
            long served = 0;
            long refused = 0;
            for (Future<Got> c : clients) {
                served += c.get().served();
                refused += c.get().refused();
            }
            threads.shutdown();
            assertEquals(0, fence.inFlight(), "permits leaked");
            assertEquals(0, fence.waiting(), "requests are stuck");
            assertEquals(served, fence.states().stream().mapToLong(ClassState::granted).sum());
            assertEquals(refused, fence.states().stream().mapToLong(ClassState::shed).sum());
            for (ClassState c : fence.states()) assertEquals(0, c.inFlight() + c.queued(), c.name());
            assertTrue(served > 0, "nothing was tested");
            assertTrue(most.get() <= MOST_WORKERS, most + " were served at once");
        }
    }

    /**
     * Each key comes once, is served or expires, and uses an edge: what is kept of it does not grow with their number, and
     * a class that is known finds a worker beside them.
     */
    @Test
    void aMillionForgedKeys() {
        Core core = new Core(Config.builder(16).add(ClassConfig.of("a", "a")).build(), false, 0);
        long before = 0;
        for (int i = 1; i <= 1_000_000; i++) {
            long now = i * 10_000L;
            core.arrive(now, new Arrival(i, "forged" + i, 0, false, 0, 0));
            core.edge(now, i, "edge" + i);
            core.done(now, i % 4 == 0 ? i - 200 : i, Outcome.OK); // some take long
            assertTrue(core.inFlight() < 16, "keys that nobody knows have every worker");
            if (i == 100_000) before = used();
        }
        assertTrue(used() < before + 30_000_000, "a key costs memory");
        assertEquals(9, core.states().size(), "a, and the buckets");
        List<Decision> decisions = core.arrive(1_000_000 * 10_000L, new Arrival(-1, "a", 0, false, 0, 0));
        Decision last = decisions.get(decisions.size() - 1);
        assertEquals(Decision.Kind.GRANT, last.kind());
        assertEquals(-1, last.id());
    }

    private static long used() {
        System.gc();
        return Runtime.getRuntime().totalMemory() - Runtime.getRuntime().freeMemory();
    }
}
