// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.bench;

import java.util.List;
import java.util.Optional;
import java.util.concurrent.AbstractExecutorService;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.TimeUnit;

/**
 * The workers of one path's server, with an admission before them: it is asked when a request comes, so what waits for a
 * worker counts as under way, and what is refused is answered by another thread.
 */
final class AdmittingExecutor extends AbstractExecutorService {
    private final String path;
    private final Admission admission;
    private final ExecutorService workers;
    private final ExecutorService refusals;

    AdmittingExecutor(String path, Admission admission, ExecutorService workers, ExecutorService refusals) {
        this.path = path;
        this.admission = admission;
        this.workers = workers;
        this.refusals = refusals;
    }

    @Override
    public void execute(Runnable task) {
        Optional<Runnable> ended = admission.enter(path);
        if (ended.isEmpty()) {
            refusals.execute(() -> Message.refuse(task));
            return;
        }
        workers.execute(() -> {
            try {
                task.run();
            } finally {
                ended.get().run();
            }
        });
    }

    // The pools are shared with other servers, and end with the process.
    @Override
    public void shutdown() {}

    @Override
    public List<Runnable> shutdownNow() {
        return List.of();
    }

    @Override
    public boolean isShutdown() {
        return false;
    }

    @Override
    public boolean isTerminated() {
        return false;
    }

    @Override
    public boolean awaitTermination(long timeout, TimeUnit unit) {
        return true;
    }
}
