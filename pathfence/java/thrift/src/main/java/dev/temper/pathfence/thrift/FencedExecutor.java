// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.thrift;

import dev.temper.pathfence.Fence;
import dev.temper.pathfence.Outcome;
import dev.temper.pathfence.Permit;
import java.util.List;
import java.util.concurrent.AbstractExecutorService;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;

/**
 * The workers of a THsHaServer or TThreadedSelectorServer, with the fence before them: a request waits without a thread,
 * and what is refused is answered by a thread of its own. It needs a {@link FencedServerTransport} before it and a
 * {@link FencedProcessor} behind it:
 *
 * <pre>{@code
 * Listener listener = Listener.of("posts", false);
 * var server = new TThreadedSelectorServer(new TThreadedSelectorServer.Args(
 *                 new FencedServerTransport(new TNonblockingServerSocket(port), listener))
 *         .executorService(new FencedExecutor(fence, Executors.newFixedThreadPool(workers)))
 *         .processor(new FencedProcessor(processor, listener)));
 * }</pre>
 */
public final class FencedExecutor extends AbstractExecutorService {
    private final Fence fence;
    private final ExecutorService workers;
    private final ExecutorService refusals = Executors.newSingleThreadExecutor(task -> {
        Thread t = new Thread(task, "pathfence-refusals");
        t.setDaemon(true);
        return t;
    });

    /**
     * Puts the fence before workers.
     *
     * @param fence decides; it must stay open as long as this
     * @param workers at least as many threads as the fence has workers, and room to queue: a permit comes back a moment
     *     before its thread is free. What they reject is refused: {@code full}, or {@code closed} after a shutdown
     */
    public FencedExecutor(Fence fence, ExecutorService workers) {
        this.fence = fence;
        this.workers = workers;
    }

    @Override
    public void execute(Runnable task) {
        if (workers.isShutdown()) throw new RejectedExecutionException("the server is shutting down");
        Job job = new Job(PeekingTransport.take(), System.nanoTime(), task);
        fence.submit(
                job.incoming.call(),
                permit -> serve(job, permit),
                reason -> refusals.execute(job.refused(reason)));
    }

    private void serve(Job job, Permit permit) {
        try {
            workers.execute(job.with(permit));
        } catch (RejectedExecutionException e) {
            permit.release(Outcome.CANCEL); // it says nothing of a downstream
            refusals.execute(job.refused(workers.isShutdown() ? "closed" : "full"));
        }
    }

    /** Lets the workers finish what they were given. What waits in the fence is refused when its turn comes. */
    @Override
    public void shutdown() {
        workers.shutdown();
    }

    /**
     * Stops the workers. What waits in the fence is refused, as after {@link #shutdown}.
     *
     * @return what was granted and has not begun; it has no permit any more, and answers that it is refused if it is run
     */
    @Override
    public List<Runnable> shutdownNow() {
        List<Runnable> left = workers.shutdownNow();
        for (Runnable r : left) if (r instanceof Job job) job.refused("closed").permit.release(Outcome.CANCEL);
        return left;
    }

    @Override
    public boolean isShutdown() {
        return workers.isShutdown();
    }

    @Override
    public boolean isTerminated() {
        return workers.isTerminated() && last().isTerminated();
    }

    @Override
    public boolean awaitTermination(long timeout, TimeUnit unit) throws InterruptedException {
        long until = System.nanoTime() + unit.toNanos(timeout);
        return workers.awaitTermination(timeout, unit)
                && last().awaitTermination(until - System.nanoTime(), TimeUnit.NANOSECONDS);
    }

    /**
     * Who answers what was refused, once the workers have ended: what they rejected on the way had to be answered. What the
     * fence decides after this has nobody who answers it: that goes to the fence's errors.
     */
    private ExecutorService last() {
        refusals.shutdown();
        return refusals;
    }
}
