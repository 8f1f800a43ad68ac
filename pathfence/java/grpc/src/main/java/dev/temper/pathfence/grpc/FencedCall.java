// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.grpc;

import dev.temper.pathfence.Outcome;
import dev.temper.pathfence.PathContext;
import dev.temper.pathfence.Permit;
import dev.temper.pathfence.Serving;
import io.grpc.Context;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.locks.ReentrantLock;

/**
 * One call before the workers: its tasks wait here until the fence grants it a worker, which does them in order, one at a
 * time, until none is left. Then a call that rests gives its permit back, and asks anew for the next task; another keeps it
 * until the call is over. The permit never comes back while the worker's thread is at work.
 *
 * <p>A stream's tasks are gRPC's own: this is the executor of the call. Those of a call of one request are what {@link
 * Intake} has to tell its handler.
 */
final class FencedCall implements Executor {
    private static final System.Logger LOG = System.getLogger(FencedCall.class.getName());
    private static final ThreadLocal<FencedCall> HERE = new ThreadLocal<>();

    private final FencedServer at;
    private final PathContext context;
    private final boolean streams;
    private final long since = System.nanoTime();
    private volatile Intake<?, ?> intake; // null: gRPC has not started the call
    private volatile String refusal;

    // The fence is never called under the lock: it may call other calls' callbacks, which take theirs.
    private final ReentrantLock lock = new ReentrantLock();
    private final Deque<Runnable> tasks = new ArrayDeque<>();
    private Runnable end; // comes after them
    private Batch batch; // what the workers have; null: nothing
    private boolean begun; // by a worker, at least once
    private boolean asking; // the fence
    private long ticket; // of the last time that it did
    private Permit permit;
    private Serving serving; // with the last permit; null: there was none
    private boolean rests;
    private boolean rested; // at least once
    private boolean over;
    private Outcome outcome; // when it is over

    /** A call that came now, in gRPC's context. */
    FencedCall(FencedServer at, PathContext context, boolean streams) {
        this.at = at;
        this.context = context;
        this.streams = streams;
        rests = streams;
        // gRPC cancels it at the end of every call, whatever other interceptors do with a listener's callbacks.
        Context.current().addListener(cancelled -> over(Outcome.CANCEL), Runnable::run);
    }

    /** The call whose tasks this thread does, or null. */
    static FencedCall here() {
        return HERE.get();
    }

    /** Who answers it from now on. */
    void takenInBy(Intake<?, ?> by) {
        intake = by;
    }

    /** Why it was refused before it has started; null: it was not. */
    String refusal() {
        return refusal;
    }

    /** Something to do, for which it takes a worker. When it is over, gRPC's tasks alone are left. */
    @Override
    public void execute(Runnable task) {
        lock.lock();
        try {
            if (over && !streams) return;
            tasks.add(task);
        } finally {
            lock.unlock();
        }
        proceed();
    }

    /** Its last callback, which needs a thread but no permit. Where nothing was begun, nobody waits for it. */
    void end(Runnable last) {
        over(Outcome.CANCEL);
        lock.lock();
        try {
            if (begun) end = last;
        } finally {
            lock.unlock();
        }
        proceed();
    }

    boolean isOver() {
        lock.lock();
        try {
            return over;
        } finally {
            lock.unlock();
        }
    }

    /** From now on it has no worker where nothing is to be done. */
    void rests() {
        lock.lock();
        try {
            rests = true;
        } finally {
            lock.unlock();
        }
    }

    /** As {@link #ends}, where nothing is to be done before its permit goes. */
    boolean over(Outcome how) {
        boolean first = ends(how);
        giveBack();
        return first;
    }

    /** It is answered, or nobody waits for an answer: nothing is left to do but its end. The first to say so counts. */
    boolean ends(Outcome how) {
        long waits;
        lock.lock();
        try {
            if (over) return false;
            over = true;
            outcome = how;
            if (!streams) tasks.clear();
            waits = asking ? ticket : 0;
        } finally {
            lock.unlock();
        }
        if (waits != 0) at.fence.cancel(waits);
        proceed();
        return true;
    }

    /** Asks the fence, or goes to the workers, if there is something to do and that is not under way. */
    private void proceed() {
        Batch next = null;
        boolean apart;
        lock.lock();
        try {
            if (batch != null || asking && !over || tasks.isEmpty() && end == null) return;
            if (over || permit != null) next = batch = new Batch();
            else asking = true;
            apart = over && !begun; // it was refused, or its client has left
        } finally {
            lock.unlock();
        }
        if (next == null) ask();
        else if (apart) at.apart.execute(next);
        else hand(next);
    }

    private void ask() {
        PathContext left = context.onward("", System.nanoTime() - since);
        long asked = at.fence.submit(left.call(at.service, at.trusted), this::granted, this::refused);
        boolean late;
        lock.lock();
        try {
            ticket = Math.max(ticket, asked); // they ascend, and another thread may have asked again by now
            late = over;
        } finally {
            lock.unlock();
        }
        if (late) at.fence.cancel(asked);
    }

    private void granted(Permit p) {
        Batch next = null;
        lock.lock();
        try {
            asking = false;
            if (!over) {
                permit = p;
                serving = new Serving(p, at.trusted ? context : context.withoutTime(), at.service, since);
                next = batch = new Batch();
            }
        } finally {
            lock.unlock();
        }
        if (next == null) p.release(Outcome.CANCEL);
        else hand(next);
    }

    private void refused(String reason) {
        refusal = reason;
        Intake<?, ?> by = intake;
        if (over(Outcome.CANCEL) && by != null) at.apart.execute(() -> by.refuse(reason));
    }

    private void hand(Batch next) {
        try {
            at.workers.execute(next);
        } catch (Throwable e) { // an Error, too: that no thread can be made, for example
            if (!(e instanceof RejectedExecutionException)) LOG.log(System.Logger.Level.ERROR, "workers fail", e);
            rejected(next);
        }
    }

    /** The workers do not take it. What is left to do at the end is done elsewhere; anything else is refused. */
    private void rejected(Batch next) {
        boolean last;
        lock.lock();
        try {
            if (batch != next || next.begun) return;
            last = over;
            if (!last) batch = null;
        } finally {
            lock.unlock();
        }
        if (last) at.apart.execute(next);
        else refused(at.workers instanceof ExecutorService s && s.isShutdown() ? "closed" : "full");
    }

    /** With a worker's thread it gives the permit back where it rests or is over. What it went on with teaches nothing. */
    void giveBack() {
        Permit p;
        Outcome how;
        lock.lock();
        try {
            boolean works = batch != null && (batch.begun || !over); // what is left to do at the end needs none
            if (permit == null || works || !over && !rests) return;
            p = permit;
            permit = null;
            how = over && !(rested && outcome == Outcome.OK) ? outcome : Outcome.LIGHT;
            rested = true;
        } finally {
            lock.unlock();
        }
        p.release(how);
    }

    /** What a worker does in one go. */
    private final class Batch implements Runnable {
        private boolean begun; // the call's lock guards it

        @Override
        public void run() {
            if (!begin()) return;
            HERE.set(FencedCall.this);
            try {
                for (Runnable task = next(); task != null; task = next()) serve(task);
            } finally {
                HERE.remove();
            }
            giveBack();
        }

        /** False where the workers have it, but said that they do not take it. */
        private boolean begin() {
            lock.lock();
            try {
                if (batch != this || begun) return false;
                FencedCall.this.begun |= !over;
                return begun = true;
            } finally {
                lock.unlock();
            }
        }

        private Runnable next() {
            lock.lock();
            try {
                Runnable task = tasks.poll();
                if (task == null) {
                    task = end;
                    end = null;
                }
                if (task == null) batch = null;
                return task;
            } finally {
                lock.unlock();
            }
        }
    }

    /** Nothing that a task throws ends its worker, or keeps the permit: a checked exception neither, of other languages. */
    private void serve(Runnable task) {
        try {
            if (serving == null) task.run();
            else serving.wrap(task).run();
        } catch (Throwable e) {
            LOG.log(System.Logger.Level.ERROR, "a call failed", e);
            over(Outcome.FAIL);
        }
    }
}
