// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.grpc;

import dev.temper.pathfence.Call;
import dev.temper.pathfence.Fence;
import dev.temper.pathfence.Outcome;
import dev.temper.pathfence.PathContext;
import dev.temper.pathfence.Permit;
import dev.temper.pathfence.Serving;
import io.grpc.Context;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.locks.ReentrantLock;

/**
 * The executor of one call: holds the call's tasks back until the fence has decided. A call of one request and one answer
 * has its permit to the end. One with a stream has it while a thread works for it: between two messages it may wait for long.
 * gRPC runs the tasks of a call one after another.
 */
final class FencedCall implements Executor {
    private static final ThreadLocal<FencedCall> HERE = new ThreadLocal<>();

    private final Executor workers;
    private final Executor refusals;
    private final PathContext context;
    private final String service;
    private final boolean streams;
    private final long since = System.nanoTime();
    private final ReentrantLock lock = new ReentrantLock();
    private final List<Runnable> held = new ArrayList<>();
    private Executor decided; // null: not yet
    private volatile Permit permit;
    private volatile Serving serving;
    private volatile String refused;
    private volatile boolean claimed;
    private volatile Outcome outcome = Outcome.OK;
    private volatile boolean ended;
    private Fence fence;
    private boolean rests; // it has given its permit back, and may go on
    private boolean resumed; // and has gone on at least once

    FencedCall(Executor workers, Executor refusals, PathContext context, String service, boolean streams) {
        this.workers = workers;
        this.refusals = refusals;
        this.context = context;
        this.service = service;
        this.streams = streams;
    }

    /** The call whose task this thread runs, or null. */
    static FencedCall here() {
        return HERE.get();
    }

    void submit(Fence to, Call call, Context of) {
        fence = to;
        long ticket = fence.submit(call, p -> granted(p, of), this::refused);
        // The client went away, or its time is over: nobody waits any more.
        of.addListener(
                cancelled -> {
                    if (fence.cancel(ticket)) refused("expired");
                },
                Runnable::run);
    }

    private void granted(Permit p, Context of) {
        if (of.isCancelled()) {
            p.release(Outcome.CANCEL);
            refused("expired");
            return;
        }
        holds(p);
        decide(workers);
    }

    private void holds(Permit p) {
        permit = p;
        serving = new Serving(p, context, service, since);
    }

    private void refused(String reason) {
        refused = reason;
        decide(refusals);
    }

    private void decide(Executor by) {
        List<Runnable> tasks;
        lock.lock();
        try {
            decided = by;
            tasks = List.copyOf(held);
            held.clear();
        } finally {
            lock.unlock();
        }
        tasks.forEach(this::execute);
    }

    @Override
    public void execute(Runnable task) {
        Executor by;
        lock.lock();
        try {
            by = decided;
            if (by == null) held.add(task);
        } finally {
            lock.unlock();
        }
        if (by == null) return;
        try {
            by.execute(() -> run(task));
        } catch (RejectedExecutionException e) {
            release(Outcome.CANCEL); // it says nothing of a downstream
            // gRPC hands over one task at a time, the first of which starts the call. Later it is gRPC's to deal with.
            if (claimed || by == refusals) throw e;
            refused(workers instanceof ExecutorService s && s.isShutdown() ? "closed" : "full");
            execute(task);
        }
    }

    private void run(Runnable task) {
        goOn();
        HERE.set(this);
        try {
            if (serving == null) task.run();
            else serving.wrap(task).run();
        } finally {
            HERE.set(null);
            // The first task starts the call: where another interceptor ended it, nobody else gives the permit back.
            if (!claimed) release(Outcome.CANCEL);
            else if (streams) rest();
        }
    }

    /** The thread goes back. What was begun and goes on later teaches nothing, nor does what is left after that. */
    private void rest() {
        boolean whole = ended && !resumed;
        release(whole || outcome != Outcome.OK ? outcome : Outcome.LIGHT);
        rests = !ended;
    }

    /** It has a thread already, so it waits for no permit. */
    private void goOn() {
        if (!rests || ended) return;
        rests = false;
        resumed = true;
        holds(fence.resume(context.path()));
    }

    String refused() {
        return refused;
    }

    /** From now on the call's listener gives the permit back. */
    void claim() {
        claimed = true;
    }

    void ends(Outcome how) {
        outcome = how;
        ended = true;
    }

    Outcome outcome() {
        return outcome;
    }

    void release(Outcome how) {
        if (permit != null) permit.release(how);
    }
}
