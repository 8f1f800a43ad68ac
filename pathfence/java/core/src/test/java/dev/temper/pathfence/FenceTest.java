// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assertions.fail;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import java.util.logging.Filter;
import java.util.logging.Logger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The engine: permits, parking, blocking, reload, switching off. The test sets the time. */
@Timeout(120) // a deadlock ends as a failure
class FenceTest {
    private static final long MS = 1_000_000;
    private static final Consumer<Permit> NEVER_GRANTED = p -> fail("granted");
    private static final Consumer<String> NEVER_REFUSED = reason -> fail("refused: " + reason);

    private final AtomicLong now = new AtomicLong();
    private final List<Throwable> errors = new ArrayList<>();
    private final Fence fence = fence(1, 1024);

    private Fence fence(long workers, long queueMax) {
        Config c = Config.builder(workers).queueMax(queueMax).add(ClassConfig.of("a", "a")).build();
        return Fence.builder(c).clock(now::get).withoutTicker().errors(errors::add).build();
    }

    @AfterEach
    void nothingWentWrongUnseen() {
        assertEquals(List.of(), errors);
    }

    private ClassState a() {
        return fence.states().get(0);
    }

    private static void awaitWaiting(Fence fence, long count) {
        while (fence.waiting() != count) Thread.onSpinWait();
    }

    @Test
    void aPermitComesBackOnce() throws Exception {
        try (Permit p = fence.acquire(Call.of("a"))) {
            assertEquals(1, fence.inFlight());
            p.release(Outcome.OK);
        }
        Permit p = fence.acquire(Call.of("a"));
        p.release(Outcome.CANCEL);
        Permit next = fence.acquire(Call.of("a"));
        p.release(Outcome.OK);
        p.close();
        assertEquals(1, fence.inFlight(), "the second release of a permit took another's worker");
        next.release(Outcome.OK);
        assertEquals(0, fence.inFlight());
        assertEquals(0, a().failed());
    }

    @Test
    void whatThrowsCountsAsFailed() throws Exception {
        assertThrows(IllegalStateException.class, () -> {
            try (Permit p = fence.acquire(Call.of("a"))) {
                throw new IllegalStateException("a handler that fails");
            }
        });
        assertThrows(IllegalStateException.class, () -> fence.call(Call.of("a"), () -> {
            throw new IllegalStateException("another");
        }));
        assertEquals(2, a().failed());
        assertEquals("served", fence.call(Call.of("a"), () -> "served"));
        assertEquals(2, a().failed());
        assertEquals(0, fence.inFlight());
    }

    @Test
    void partsShareAWorker() throws Exception {
        Permit root = fence.acquire(Call.of("a"));
        Permit part = root.share();
        Permit ofPart = part.share();
        root.release(Outcome.OK);
        part.release(Outcome.FAIL);
        assertEquals(1, fence.inFlight());
        ofPart.release(Outcome.OK);
        assertEquals(0, fence.inFlight());
        assertEquals(0, a().failed(), "what counts is the root's outcome");
        assertThrows(IllegalStateException.class, root::share);
        assertEquals(0, fence.waiting());
    }

    @Test
    void whoWaitsIsParkedServedCancelledOrRefused() throws Exception {
        Permit first = fence.acquire(Call.of("a"));
        AtomicReference<Permit> second = new AtomicReference<>();
        AtomicReference<String> reason = new AtomicReference<>();
        fence.submit(Call.of("a"), second::set, NEVER_REFUSED);
        long gone = fence.submit(Call.of("a"), NEVER_GRANTED, NEVER_REFUSED);
        fence.submit(new Call("a", 40 * MS, 0), NEVER_GRANTED, reason::set);
        assertEquals(3, fence.waiting());
        assertTrue(fence.cancel(gone));
        assertFalse(fence.cancel(gone));
        now.set(41 * MS);
        fence.tick();
        assertEquals("expired", reason.get());
        assertEquals(1, fence.waiting());
        assertNull(second.get());
        first.release(Outcome.OK);
        assertEquals("a", second.get().className());
    }

    @Test
    void acquireBlocksUntilAWorkerIsFree() throws Exception {
        Permit first = fence.acquire(Call.of("a"));
        FutureTask<Permit> second = new FutureTask<>(() -> fence.acquire(Call.of("a")));
        new Thread(second).start();
        awaitWaiting(fence, 1);
        first.release(Outcome.OK);
        assertEquals("a", second.get().className());

        FutureTask<Permit> third = new FutureTask<>(() -> fence.acquire(new Call("a", 10 * MS, 0)));
        new Thread(third).start();
        awaitWaiting(fence, 1);
        now.set(20 * MS);
        fence.tick();
        ExecutionException e = assertThrows(ExecutionException.class, third::get);
        assertEquals("pf-shed: expired", e.getCause().getMessage());
        assertEquals("expired", ((ShedException) e.getCause()).reason());
    }

    @Test
    void whoIsInterruptedWhileWaitingLeavesNothingBehind() throws Exception {
        for (int i = 0; i < 500; i++) {
            Permit held = fence.acquire(Call.of("a"));
            FutureTask<Boolean> waiter = new FutureTask<>(() -> {
                try {
                    fence.acquire(Call.of("a")).release(Outcome.OK);
                    return true;
                } catch (InterruptedException e) {
                    return false;
                }
            });
            Thread t = new Thread(waiter);
            t.start();
            awaitWaiting(fence, 1);
            // The two race: whoever loses, the worker is free afterwards.
            if (i % 2 == 0) t.interrupt();
            held.release(Outcome.OK);
            if (i % 2 == 1) t.interrupt();
            waiter.get();
            t.join();
            assertEquals(0, fence.inFlight(), "round " + i);
            assertEquals(0, fence.waiting(), "round " + i);
        }
    }

    @Test
    void aClosedFenceRefusesWhoWaitsAndWhoComes() throws Exception {
        Permit held = fence.acquire(Call.of("a"));
        List<String> reasons = new ArrayList<>();
        fence.submit(Call.of("a"), NEVER_GRANTED, reasons::add);
        fence.close();
        assertEquals(List.of("closed"), reasons);
        fence.submit(Call.of("a"), NEVER_GRANTED, reasons::add);
        assertEquals(List.of("closed", "closed"), reasons);
        held.release(Outcome.OK);
        assertEquals(0, fence.inFlight());
    }

    @Test
    void aLongQueueOfRequestsThatEndAtOnceMakesNoDeepStack() throws Exception {
        Fence long_ = fence(1, 200_000);
        Permit first = long_.acquire(Call.of("a"));
        AtomicInteger served = new AtomicInteger();
        for (int i = 0; i < 100_000; i++)
            long_.submit(
                    Call.of("a"),
                    p -> {
                        served.incrementAndGet();
                        p.release(Outcome.OK);
                    },
                    NEVER_REFUSED);
        first.release(Outcome.OK);
        assertEquals(100_000, served.get());
        assertEquals(0, long_.inFlight());
    }

    @Test
    void aCallbackThatThrowsGivesItsPermitBack() {
        fence.submit(
                Call.of("a"),
                p -> {
                    throw new IllegalStateException("a callback that fails");
                },
                NEVER_REFUSED);
        assertEquals(0, fence.inFlight());
        assertEquals(1, a().failed());
        assertEquals("a callback that fails", errors.remove(0).getMessage());
    }

    /** What Kotlin, say, throws without declaring it. */
    private static void sneaky(Exception e) {
        FenceTest.<RuntimeException>as(e);
    }

    @SuppressWarnings("unchecked")
    private static <E extends Exception> void as(Exception e) throws E {
        throw (E) e;
    }

    @Test
    void whateverCallbacksThrowTheOthersAreCalled() throws Exception {
        Permit held = fence.acquire(Call.of("a"));
        List<String> told = new ArrayList<>();
        fence.submit(new Call("a", MS, 0), NEVER_GRANTED, reason -> sneaky(new Exception(reason)));
        fence.submit(new Call("a", MS, 0), NEVER_GRANTED, told::add);
        now.set(2 * MS);
        fence.tick();
        assertEquals(List.of("expired"), told);
        fence.submit(Call.of("a"), p -> sneaky(new Exception("granted")), NEVER_REFUSED);
        FutureTask<Permit> last = new FutureTask<>(() -> fence.acquire(Call.of("a")));
        new Thread(last).start();
        awaitWaiting(fence, 2);
        held.release(Outcome.OK);
        last.get().release(Outcome.OK);
        assertEquals(0, fence.inFlight());
        assertEquals("expired", errors.remove(0).getMessage());
        assertEquals("granted", errors.remove(0).getMessage());
    }

    @Test
    void whoIsToldOfErrorsMayThrowToo() throws Exception {
        List<Throwable> logged = new ArrayList<>();
        Logger log = Logger.getLogger(Fence.class.getName());
        Filter before = log.getFilter();
        log.setFilter(r -> !logged.add(r.getThrown()));
        try {
            Exception rejected = new Exception("nobody is told");
            Fence f = Fence.builder(Config.builder(1).build())
                    .clock(now::get)
                    .withoutTicker()
                    .errors(e -> sneaky(rejected))
                    .build();
            Permit held = f.acquire(Call.of("a"));
            IllegalStateException failed = new IllegalStateException("a callback that fails");
            List<String> told = new ArrayList<>();
            f.submit(new Call("a", MS, 0), NEVER_GRANTED, reason -> {
                throw failed;
            });
            f.submit(new Call("a", MS, 0), NEVER_GRANTED, told::add);
            now.set(2 * MS);
            f.tick();
            assertEquals(List.of("expired"), told);
            held.release(Outcome.OK);
            assertEquals(List.of(failed, rejected), logged);
        } finally {
            log.setFilter(before);
        }
    }

    @Test
    void theTickerOutlivesCallbacksThatThrow() throws Exception {
        Config c = Config.builder(1).window(MS).build();
        BlockingQueue<String> told = new LinkedBlockingQueue<>();
        try (Fence ticking = Fence.builder(c).errors(e -> told.add(e.getMessage())).build()) {
            Permit held = ticking.acquire(Call.of("a"));
            for (String name : List.of("first", "second")) {
                ticking.submit(new Call("a", MS, 0), NEVER_GRANTED, reason -> sneaky(new Exception(name)));
                assertEquals(name, told.take());
            }
            held.release(Outcome.OK);
        }
    }

    /** Another thread gets through while a callback runs, so it runs outside of the lock; and it may use the fence. */
    @Test
    void callbacksMayUseTheFence() {
        AtomicReference<Permit> later = new AtomicReference<>();
        fence.submit(
                Call.of("a"),
                p -> {
                    assertEquals(1, CompletableFuture.supplyAsync(fence::inFlight).join());
                    fence.submit(Call.of("a"), later::set, NEVER_REFUSED);
                    fence.tick();
                    fence.off(true);
                    fence.off(false);
                    fence.reload(fence.config());
                    assertTrue(fence.cancel(fence.submit(Call.of("a"), NEVER_GRANTED, NEVER_REFUSED)));
                    assertThrows(IllegalStateException.class, () -> fence.acquire(Call.of("a")));
                    p.release(Outcome.OK);
                },
                NEVER_REFUSED);
        assertEquals(1, fence.inFlight());
        later.get().release(Outcome.OK);
    }

    /** Off, nothing is bounded where nothing would be without the fence. */
    @Test
    void offBoundsNothingWhereTheServerDoes() throws Exception {
        Fence wide = Fence.builder(Config.builder(1).build()).unbounded().clock(now::get).withoutTicker().errors(errors::add).build();
        List<Permit> permits = new ArrayList<>();
        for (int i = 0; i < 3; i++) wide.submit(Call.of("a"), permits::add, NEVER_REFUSED);
        assertEquals(1, permits.size(), "on");
        wide.off(true);
        assertEquals(3, permits.size(), "off, those that waited");
        wide.submit(Call.of("a"), permits::add, NEVER_REFUSED);
        assertEquals(4, wide.inFlight(), "off, what comes");
        wide.off(false);
        wide.submit(Call.of("a"), permits::add, NEVER_REFUSED);
        for (int i = 0; i < 3; i++) permits.get(i).release(Outcome.OK);
        assertEquals(4, permits.size(), "on, as many as workers");
        permits.get(3).release(Outcome.OK);
        assertEquals(5, permits.size(), "on, again");
        permits.get(4).release(Outcome.OK);
    }

    @Test
    void reloadAndOff() throws Exception {
        Permit first = fence.acquire(Call.of("a"));
        AtomicReference<Permit> second = new AtomicReference<>();
        fence.submit(Call.of("b"), second::set, NEVER_REFUSED);
        assertThrows(ConfigException.class, () -> fence.reload(Config.builder(0).build()));
        Config.Builder others = Config.builder(1);
        Config.Builder tooMany = Config.builder(2);
        for (int i = 0; i < 32; i++) {
            others.add(ClassConfig.of("c" + i));
            tooMany.add(ClassConfig.of("d" + i));
        }
        fence.reload(others.build());
        String refused = assertThrows(ConfigException.class, () -> fence.reload(tooMany.build())).getMessage();
        assertTrue(refused.contains("restart the service"), refused);
        assertNull(second.get());
        fence.reload(Config.builder(2).add(ClassConfig.of("a", "a")).build());
        assertEquals(2, fence.inFlight());
        List<String> reasons = new ArrayList<>();
        fence.off(true);
        fence.submit(new Call("a", MS, 0), NEVER_GRANTED, reasons::add);
        now.set(500 * MS);
        fence.tick();
        assertEquals(List.of(), reasons, "off, nothing is shed");
        assertEquals(1, fence.waiting());
        fence.off(false);
        assertEquals(List.of("expired"), reasons);
        first.release(Outcome.OK);
        second.get().release(Outcome.OK);
    }

    @Test
    void whoIsNotTrustedMayOnlyShortenTheTarget() throws Exception {
        Permit held = fence.acquire(Call.of("a"));
        List<String> reasons = new ArrayList<>();
        fence.submit(new Call("a", 2000 * MS, 0, true), NEVER_GRANTED, reasons::add);
        fence.submit(new Call("a", 40 * MS, 0, true), NEVER_GRANTED, reasons::add);
        fence.submit(new Call("a", 2000 * MS, 0, false), p -> p.release(Outcome.OK), NEVER_REFUSED);
        now.set(40 * MS);
        fence.tick();
        assertEquals(List.of("expired"), reasons);
        now.set(1000 * MS); // the default target
        fence.tick();
        assertEquals(List.of("expired", "expired"), reasons);
        held.release(Outcome.OK);
        assertEquals(0, fence.inFlight());
    }

    @Test
    void edgesAreLearnedBelowARequest() throws Exception {
        Fence wide = fence(4, 1024);
        List<String> classes = new ArrayList<>();
        wide.onClass(classes::add);
        assertEquals(List.of("~u0", "~u1", "~u2", "~u3", "~u4", "~u5", "~u6", "~u7", "a"), classes);
        PathContext came = new PathContext("home", 0, "front*1");
        assertEquals(PathContext.NONE, Serving.calls("store"));
        for (int i = 0; i < 8; i++) {
            Permit p = wide.acquire(Call.of("home"));
            try (Serving.Scope s = new Serving(p, came, "shop", System.nanoTime()).enter()) {
                assertEquals(new PathContext("home", 0, "front*1;shop*1"), Serving.calls("store"));
            }
            p.release(Outcome.OK);
        }
        assertTrue(Serving.here().isEmpty());
        Permit p = wide.acquire(Call.of("home"));
        assertEquals("~calls:store", p.className());
        assertEquals("~calls:store", classes.get(classes.size() - 1));
        assertEquals(10, classes.size());
        Serving serving = new Serving(p, came, "", System.nanoTime());
        AtomicReference<Serving> elsewhere = new AtomicReference<>();
        CompletableFuture.runAsync(serving.wrap(() -> elsewhere.set(Serving.here().orElseThrow()))).join();
        assertEquals(serving, elsewhere.get());
    }

    @Test
    void whatIsNoNameIsNoEdge() throws Exception {
        try (Permit p = fence.acquire(Call.of("a"))) {
            p.edge(null);
            p.edge("not valid");
            assertFalse(p.hasEdge());
            p.edge("store");
            assertTrue(p.hasEdge());
        }
    }

    /** The class of a key whose requests do something on their thread. */
    private static String learned(Fence wide, String key, Runnable work) throws Exception {
        for (int i = 0; i < 8; i++) {
            try (Permit p = wide.acquire(Call.of(key));
                    Serving.Scope s = new Serving(p, PathContext.NONE, "", System.nanoTime()).enter()) {
                work.run();
                p.release(Outcome.OK);
            }
        }
        try (Permit p = wide.acquire(Call.of(key))) {
            return p.className();
        }
    }

    /** A client stands on another, which stands on a third: the one that was called first has the name. */
    @Test
    void aCallWithinAnotherIsNoEdgeOfItsOwn() throws Exception {
        Fence wide = fence(4, 1024);
        String store = learned(wide, "store", () -> Serving.calls("store"));
        assertEquals(store, learned(wide, "one", () -> {
            try (Serving.Scope one = Serving.calling("store");
                    Serving.Scope two = Serving.calling("cache")) {
                Serving.calls("disk");
            }
        }));
        assertEquals(store, learned(wide, "told", () -> {
            Serving.calls("store");
            try (Serving.Scope more = Serving.within()) {
                Serving.calls("cache");
            }
        }));
        String both = learned(wide, "both", () -> List.of("store", "cache").forEach(Serving::calls));
        assertEquals(both, learned(wide, "two", () -> {
            try (Serving.Scope one = Serving.calling("store")) {
                assertEquals(PathContext.NONE, Serving.calls("disk"));
            }
            Serving.calls("cache");
        }), "the second comes after the first");
        assertEquals(store, learned(wide, "open", () -> Serving.calling("store")));
        assertEquals(both, learned(wide, "next", () -> List.of("store", "cache").forEach(Serving::calls)), "it was not closed");
        try (Serving.Scope outside = Serving.calling("store")) {
            assertTrue(Serving.here().isEmpty());
        }
    }

    /** Whatever takes the lock reads the clock under it: here the clock tells how often that was. */
    @Test
    void anEdgeThatTheClassIsKnownToUseTakesNoLock() throws Exception {
        AtomicInteger locked = new AtomicInteger();
        Config c = Config.builder(16).add(ClassConfig.of("a", "a", "same")).build();
        Fence counting = Fence.builder(c)
                .clock(() -> locked.getAndIncrement())
                .withoutTicker()
                .build();
        Permit a = counting.acquire(Call.of("a"));
        Permit same = counting.acquire(Call.of("same"));
        Permit part = a.share();
        Permit bucket = counting.acquire(Call.of("nobody knows it"));
        locked.set(0);
        a.edge("store");
        assertEquals(1, locked.get(), "nobody knew it");
        for (Permit p : List.of(a, same, part)) p.edge("store");
        assertEquals(1, locked.get(), "known");
        a.edge(null);
        a.edge("not valid");
        assertEquals(3, locked.get(), "not valid, so never known");
        for (int i = 2; i <= 8; i++) same.edge("edge" + i);
        assertEquals(10, locked.get());
        for (String edge : List.of("edge8", "edge9", "store")) a.edge(edge);
        a.edge(null);
        assertEquals(10, locked.get(), "a class has at most 8");
        for (int i = 0; i < 3; i++) bucket.edge("store");
        assertEquals(13, locked.get(), "a bucket's requests have edges of their own");
    }

    /** A key gets a class while a request of it is in flight; then another key, in the same bucket, is learned. */
    @Test
    void edgesOfABucketsRequestsAreAlwaysTold() throws Exception {
        Config.Builder c = Config.builder(16).unknownBuckets(1);
        Fence wide = Fence.builder(c.build()).clock(now::get).withoutTicker().errors(errors::add).build();
        Permit before = wide.acquire(Call.of("a"));
        wide.reload(c.add(ClassConfig.of("a", "a")).build());
        before.edge("store");
        for (int i = 0; i < 8; i++) {
            Permit p = wide.acquire(Call.of("home"));
            p.edge("store");
            p.release(Outcome.OK);
        }
        Permit home = wide.acquire(Call.of("home"));
        home.edge("cache");
        assertEquals("~calls:cache+store", wide.acquire(Call.of("home")).className(), "its class has store, so that cache makes another");
        home.edge("store");
        assertEquals("~calls:cache+store", wide.acquire(Call.of("home")).className());
    }

    @Test
    void aLearnedClassKnowsItsEdges() throws Exception {
        AtomicInteger locked = new AtomicInteger();
        Fence counting = Fence.builder(Config.builder(16).build())
                .clock(() -> locked.getAndIncrement())
                .withoutTicker()
                .build();
        for (int i = 0; i < 8; i++) {
            Permit p = counting.acquire(Call.of("home"));
            p.edge("store");
            p.release(Outcome.OK);
        }
        Permit home = counting.acquire(Call.of("home"));
        assertEquals("~calls:store", home.className());
        counting.acquire(Call.of("other")).edge("cache");
        List<String> unknown = new ArrayList<>();
        for (ClassState s : counting.states()) {
            if (s.name().startsWith("~u")) unknown.addAll(s.keys());
            else assertEquals(List.of("home"), s.keys());
        }
        assertEquals(List.of("other"), unknown);
        locked.set(0);
        home.edge("store");
        assertEquals(0, locked.get());
        home.edge("cache");
        home.edge("cache");
        assertEquals(2, locked.get(), "it is of the key, and the class of this request has it not");
        assertEquals("~calls:cache+store", counting.acquire(Call.of("home")).className());
    }

    /** The time in which what waits and is in flight will have been served. */
    @Test
    void whatAClassHasToDoTakesAsLongAsItHolds() throws Exception {
        Fence two = fence(2, 1024);
        assertEquals(0, two.drain("a"));
        for (int i = 0; i < 3; i++) {
            Permit p = two.acquire(Call.of("a"));
            now.addAndGet(500 * MS);
            p.release(Outcome.OK);
        }
        assertEquals(0, two.drain("a"));
        List<Permit> served = new ArrayList<>();
        for (int i = 0; i < 5; i++) two.submit(Call.of("a"), served::add, NEVER_REFUSED);
        assertEquals(2, served.size());
        assertEquals(5 * 500 * MS / 2, two.drain("a"), "5 requests of 500 ms, two at a time");
    }

    /** Four requests of each class at a time, which come to take longer than their target. */
    @Test
    void classesThatAreLateAndUseTheSameEdgeHaveALimitTogether() {
        Config.Builder c = Config.builder(12).target(250 * MS);
        for (String name : List.of("a", "b", "c")) c.add(ClassConfig.of(name, name));
        Fence shared = Fence.builder(c.build()).clock(now::get).withoutTicker().errors(errors::add).build();
        int quick = 8;
        for (int round = 0; round < quick + 3; round++) {
            List<Permit> late = new ArrayList<>();
            for (int i = 0; i < 12; i++) {
                String name = List.of("a", "b", "c").get(i % 3);
                shared.submit(
                        Call.of(name),
                        p -> {
                            p.edge(name.equals("c") ? "elsewhere" : "store");
                            late.add(p);
                        },
                        NEVER_REFUSED);
            }
            assertEquals(12, late.size());
            tickFor(shared, round < quick ? 100 : 300);
            for (Permit p : late) p.release(Outcome.OK);
        }
        tickFor(shared, 100);
        ClassState a = shared.state("a").orElseThrow();
        assertEquals("together", a.reason());
        assertTrue(a.limit() < 8, a + "");
        assertEquals(a.limit(), shared.state("b").orElseThrow().limit());
        assertEquals(12, shared.state("c").orElseThrow().limit());
        AtomicInteger granted = new AtomicInteger();
        for (int i = 0; i < 12; i++)
            shared.submit(Call.of(i % 2 == 0 ? "a" : "b"), p -> granted.incrementAndGet(), reason -> {});
        assertEquals(a.limit(), granted.get(), "of both together");
    }

    private void tickFor(Fence fence, long millis) {
        for (long t = 0; t < millis; t += 25) {
            now.addAndGet(25 * MS);
            fence.tick();
        }
    }
}
