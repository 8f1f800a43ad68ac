// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence;

import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;

/** A fence's thread: every quarter of a window it lets the fence look at the clock, and at times at its file. */
final class Ticker implements Runnable {
    private static final long WATCH_EVERY = TimeUnit.SECONDS.toNanos(1);

    private final Fence fence;
    private final Optional<Watch> watch;
    private final ReentrantLock lock = new ReentrantLock();
    private final Condition over = lock.newCondition();
    private boolean stopped;

    Ticker(Fence fence, Optional<Watch> watch) {
        this.fence = fence;
        this.watch = watch;
    }

    Thread start() {
        Thread t = new Thread(this, "pathfence-ticker");
        t.setDaemon(true);
        t.start();
        return t;
    }

    void stop() {
        lock.lock();
        try {
            stopped = true;
            over.signalAll();
        } finally {
            lock.unlock();
        }
    }

    @Override
    public void run() {
        long looked = System.nanoTime();
        while (!pause()) {
            fence.tick();
            if (watch.isEmpty() || System.nanoTime() - looked < WATCH_EVERY) continue;
            looked = System.nanoTime();
            watch.get().look();
        }
    }

    /** Waits; true when it is over. */
    private boolean pause() {
        long left = fence.config().window() / 4;
        lock.lock();
        try {
            while (!stopped && left > 0) left = over.awaitNanos(left);
            return stopped;
        } catch (InterruptedException e) {
            return true; // nobody else has this thread: whoever interrupts it wants it to end
        } finally {
            lock.unlock();
        }
    }
}
