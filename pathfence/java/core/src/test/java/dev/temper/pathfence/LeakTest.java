// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

/**
 * Random operations on several threads; at the end no permit is out and nobody waits. All ten million, or a given seed:
 * {@code mvn test -pl core -Dtest=LeakTest -Dpathfence.operations=10000000 -Dpathfence.seed=1}.
 */
class LeakTest {
    private static final int THREADS = 4;
    private static final long MS = 1_000_000;
    private static final String[] KEYS = {"a", "b", "c", "x", "y", "z", "not valid"};

    private final long operations = Long.getLong("pathfence.operations", 2_000_000);
    private final long seed =
            Long.getLong("pathfence.seed", ThreadLocalRandom.current().nextLong(1 << 30));

    private final AtomicLong clock = new AtomicLong();
    private final AtomicLong count = new AtomicLong();
    private final AtomicLong submitted = new AtomicLong();
    private final AtomicLong granted = new AtomicLong();
    private final AtomicLong refused = new AtomicLong();
    private final AtomicLong cancelled = new AtomicLong();
    private final AtomicLong thrown = new AtomicLong();
    private final AtomicLong caught = new AtomicLong();
    private final Held held = new Held();
    private final Fence fence = Fence.builder(config(14))
            .clock(clock::get)
            .withoutTicker()
            .errors(e -> caught.incrementAndGet())
            .build();

    /** Permits that are out, handed from thread to thread. */
    private static final class Held {
        private final List<Permit> permits = new ArrayList<>();

        synchronized void add(Permit p) {
            permits.add(p);
        }

        /** Any of them, or null. */
        synchronized Permit take(long r) {
            if (permits.isEmpty()) return null;
            int last = permits.size() - 1;
            int any = (int) (r % permits.size());
            Permit p = permits.get(any);
            permits.set(any, permits.get(last));
            permits.remove(last);
            return p;
        }
    }

    private static Config config(long r) {
        Config.Builder c = Config.builder(2 + r % 15).queueMax(64);
        for (String name : List.of("a", "b", "c")) c.add(ClassConfig.of(name, name));
        return c.build();
    }

    @Test
    void nothingLeaks() throws Exception {
        System.out.println(operations + " operations on " + THREADS + " threads, -Dpathfence.seed=" + seed);
        ExecutorService threads = Executors.newFixedThreadPool(THREADS);
        List<Future<Void>> running = new ArrayList<>();
        for (int i = 0; i < THREADS; i++) running.add(threads.submit(serving(seed + i)));
        for (Future<Void> f : running) f.get();
        threads.shutdown();
        fence.off(true);
        for (Permit p = held.take(0); p != null; p = held.take(0)) p.release(Outcome.OK);
        System.out.println(submitted + " submitted, " + granted + " granted, " + refused + " refused, " + cancelled
                + " cancelled; in flight " + fence.inFlight() + ", waiting " + fence.waiting());
        assertEquals(0, fence.inFlight(), "permits leaked");
        assertEquals(0, fence.waiting(), "requests are stuck");
        assertEquals(submitted.get(), granted.get() + refused.get() + cancelled.get(), "each is decided once");
        assertEquals(thrown.get(), caught.get());
        assertTrue(granted.get() > 0 && refused.get() > 0 && cancelled.get() > 0, "nothing was tested");
    }

    private Callable<Void> serving(long seedOfThread) {
        return () -> {
            SplittableRandom random = new SplittableRandom(seedOfThread);
            long last = 0;
            while (count.getAndIncrement() < operations) {
                long r = random.nextLong() >>> 1;
                clock.addAndGet(r % 200_000);
                last = step((int) (r % 16), r >>> 32, last);
            }
            return null;
        };
    }

    /** Does one thing; gives the ticket that was submitted last. */
    private long step(int what, long x, long last) {
        switch (what) {
            case 0, 1, 2, 3, 4, 5 -> {
                return submit(x);
            }
            case 6 -> {
                if (fence.cancel(last)) cancelled.incrementAndGet();
            }
            case 7 -> share(held.take(x), x);
            case 8 -> release(held.take(x), x % 2 == 0 ? Outcome.FAIL : Outcome.CANCEL);
            case 9 -> operate(x);
            case 10 -> fence.tick();
            case 11 -> {
                Permit p = held.take(x);
                if (p != null) p.close();
                release(p, Outcome.OK); // once more, which does nothing
            }
            default -> release(held.take(x), Outcome.OK);
        }
        return last;
    }

    private long submit(long x) {
        submitted.incrementAndGet();
        Call call = new Call(KEYS[(int) (x % 7)], x % 5 == 0 ? x % 50 * MS : 0, x % 11 == 0 ? x % 10 : 0);
        return fence.submit(call, p -> granted(p, x), reason -> refused.incrementAndGet());
    }

    private void granted(Permit p, long x) {
        granted.incrementAndGet();
        if (x % 4 == 0) {
            thrown.incrementAndGet();
            throw new IllegalStateException("a handler that fails at once");
        }
        if (x % 4 == 1) p.release(Outcome.OK);
        else held.add(p);
    }

    private void share(Permit p, long x) {
        if (p == null) return;
        p.edge(x % 2 == 0 ? "store" : "cache");
        held.add(p.share());
        p.release(Outcome.OK);
    }

    private static void release(Permit p, Outcome outcome) {
        if (p != null) p.release(outcome);
    }

    private void operate(long x) {
        if (x % 1024 == 0) fence.reload(config(x >> 10));
        if (x % 1024 == 1) fence.off((x >> 10 & 1) == 1);
    }
}
