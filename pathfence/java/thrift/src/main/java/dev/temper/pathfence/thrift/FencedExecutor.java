// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.thrift;

import dev.temper.pathfence.Fence;
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
 * Listener listener = Listener.of("posts", true);
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
     * @param workers at least as many threads as the fence has workers
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
                permit -> workers.execute(job.with(permit)),
                reason -> refusals.execute(job.refused(reason)));
    }

    @Override
    public void shutdown() {
        workers.shutdown();
        refusals.shutdown();
    }

    @Override
    public List<Runnable> shutdownNow() {
        refusals.shutdownNow();
        return workers.shutdownNow();
    }

    @Override
    public boolean isShutdown() {
        return workers.isShutdown();
    }

    @Override
    public boolean isTerminated() {
        return workers.isTerminated() && refusals.isTerminated();
    }

    @Override
    public boolean awaitTermination(long timeout, TimeUnit unit) throws InterruptedException {
        long until = System.nanoTime() + unit.toNanos(timeout);
        return workers.awaitTermination(timeout, unit)
                && refusals.awaitTermination(until - System.nanoTime(), TimeUnit.NANOSECONDS);
    }
}
