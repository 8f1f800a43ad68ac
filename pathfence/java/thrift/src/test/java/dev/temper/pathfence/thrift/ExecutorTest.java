// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.thrift;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.temper.pathfence.Call;
import dev.temper.pathfence.Config;
import dev.temper.pathfence.Fence;
import dev.temper.pathfence.Outcome;
import dev.temper.pathfence.Permit;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executors;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** How the workers end. There is no server: a task notes why it was refused, which is what a processor would answer. */
@Timeout(120)
class ExecutorTest {
    private final List<Throwable> errors = Collections.synchronizedList(new ArrayList<>());
    private final Fence fence = Fence.builder(Config.builder(2).off(true).build())
            .errors(errors::add)
            .build();
    private final FencedExecutor executor = new FencedExecutor(fence, Executors.newSingleThreadExecutor());
    private final List<String> refused = Collections.synchronizedList(new ArrayList<>());
    private final CountDownLatch begun = new CountDownLatch(1);
    private final CountDownLatch open = new CountDownLatch(1);

    /** One permit is the thread's, one is of a task that the thread has not begun; three tasks wait in the fence. */
    private void fill() throws InterruptedException {
        executor.execute(() -> {
            begun.countDown();
            try {
                open.await();
            } catch (InterruptedException e) {
                // shutdownNow() ends it.
            }
        });
        begun.await();
        for (int i = 0; i < 4; i++) executor.execute(() -> refused.add(String.valueOf(Job.here().refused)));
        assertEquals(2, fence.inFlight());
        assertEquals(3, fence.waiting());
    }

    @AfterEach
    void nothingIsLeft() {
        assertEquals(0, fence.inFlight() + fence.waiting());
        assertEquals(0, fence.states().stream().mapToLong(s -> s.failed()).sum());
        fence.close();
    }

    @Test
    void whatWaitsIsRefusedAfterAShutdown() throws Exception {
        fill();
        executor.shutdown();
        assertThrows(RejectedExecutionException.class, () -> executor.execute(() -> refused.add("too late")));
        open.countDown();
        assertTrue(executor.awaitTermination(60, TimeUnit.SECONDS));
        assertTrue(executor.isTerminated());
        Collections.sort(refused);
        assertEquals(List.of("closed", "closed", "closed", "null"), refused);
        assertEquals(List.of(), errors);
    }

    @Test
    void whatHasNotBegunGivesItsPermitBackWhenAllIsStopped() throws Exception {
        fill();
        List<Runnable> left = executor.shutdownNow();
        assertTrue(executor.awaitTermination(60, TimeUnit.SECONDS));
        assertEquals(List.of("closed", "closed", "closed"), refused);
        assertEquals(0, fence.inFlight());
        assertEquals(1, left.size());
        left.get(0).run();
        assertEquals("closed", refused.get(3));
        assertEquals(List.of(), errors);
    }

    /** Others may use the same fence, and give back later what a task waited for. */
    @Test
    void aRefusalThatNobodyIsLeftToAnswerIsReported() throws Exception {
        List<Permit> others = List.of(fence.acquire(Call.of("")), fence.acquire(Call.of("")));
        executor.execute(() -> refused.add("nobody runs it"));
        executor.shutdown();
        assertTrue(executor.awaitTermination(60, TimeUnit.SECONDS));
        for (Permit p : others) p.release(Outcome.OK);
        assertEquals(1, errors.size());
        assertInstanceOf(RejectedExecutionException.class, errors.get(0));
        assertEquals(List.of(), refused);
    }
}
