// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.spring;

import dev.temper.pathfence.Call;
import dev.temper.pathfence.Fence;
import dev.temper.pathfence.Outcome;
import dev.temper.pathfence.PathContext;
import dev.temper.pathfence.Permit;
import dev.temper.pathfence.Serving;
import jakarta.servlet.AsyncEvent;
import jakarta.servlet.AsyncListener;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicReference;

/**
 * A request between the fence and the server. Its state goes from NEW to DECIDED, on the way perhaps PARKED, and in the
 * end OVER; whoever moves it acts, so that every grant and refusal has exactly one who deals with it.
 */
final class FencedRequest implements AsyncListener {
    private enum State {
        /** Neither decided nor parked. */
        NEW,
        /** Waits without a thread. */
        PARKED,
        /** Granted or refused. */
        DECIDED,
        /** The server is done with it. */
        OVER
    }

    private static final long SECOND = 1_000_000_000;
    private static final long MAX_RETRY_AFTER = 60 * SECOND;

    private final PathContext context;
    private final String service;
    private final long since;
    private final AtomicReference<State> state = new AtomicReference<>(State.NEW);
    private Fence fence;
    private volatile long ticket;
    private volatile Runnable resume;
    private final AtomicReference<Runnable> over = new AtomicReference<>();
    private volatile Permit permit;
    private volatile Serving serving;
    private volatile String refused;
    private volatile String refusedIn;
    private volatile long decidedAt;
    /** A filter has served the request; from then on it is the filter that gives the permit back. */
    private volatile boolean taken;

    FencedRequest(PathContext context, String service, long since) {
        this.context = context;
        this.service = service;
        this.since = since;
    }

    void submit(Fence to, Call call, long parent) {
        fence = to;
        ticket = to.submit(call, parent, this::granted, this::refused);
    }

    private void granted(Permit p) {
        decidedAt = System.nanoTime();
        holds(p);
        if (!decided()) p.release(Outcome.CANCEL);
    }

    private void holds(Permit p) {
        permit = p;
        serving = new Serving(p, context, service, since);
    }

    private void refused(String reason) {
        decidedAt = System.nanoTime();
        refused = reason;
        decided();
    }

    /**
     * Sends a request that waits back through the server, whose thread does the rest: this is the fence's callback, and a
     * client that does not read must not hold it up. False: the server is done with the request.
     */
    private boolean decided() {
        if (state.compareAndSet(State.NEW, State.DECIDED)) return true;
        return state.compareAndSet(State.PARKED, State.DECIDED) && resumed();
    }

    private boolean resumed() {
        try {
            resume.run();
            return true;
        } catch (IllegalStateException | RejectedExecutionException e) {
            return false; // the server has ended it
        }
    }

    /** @param over called once, when the filters, or the server, are done with it */
    void whenOver(Runnable over) {
        this.over.set(over);
    }

    private void over() {
        Runnable told = over.getAndSet(null);
        if (told != null) Admission.guarded(told);
    }

    boolean isDecided() {
        return state.get() == State.DECIDED;
    }

    /**
     * Lets the request wait without a thread.
     *
     * @param back sends it back through the server, and throws IllegalStateException or RejectedExecutionException if that
     *     has ended it
     * @return false if it is decided already
     */
    boolean park(Runnable back) {
        resume = back;
        return state.compareAndSet(State.NEW, State.PARKED);
    }

    /** The same for a server that takes a request back only as it does those that have waited. */
    void parkAnyway(Runnable back) {
        if (!park(back) && !resumed()) release(Outcome.CANCEL);
    }

    /** The server cannot let it wait. */
    void withdraw() {
        fence.cancel(ticket);
        release(Outcome.CANCEL);
    }

    /** The server has lost it; true if it waited. */
    boolean abandon() {
        if (!state.compareAndSet(State.PARKED, State.OVER)) return false;
        fence.cancel(ticket);
        over();
        return true;
    }

    String refused() {
        return refused;
    }

    Serving serving() {
        return serving;
    }

    /**
     * The filter serves it, and gives the permit back. It may do so again when the server resumes what went on
     * asynchronously: without a worker meanwhile, and now on a thread of the server's.
     */
    void take() {
        if (taken) holds(fence.resume(context.path()));
        taken = true;
    }

    boolean isTaken() {
        return taken;
    }

    /** The server is done with it: one that no filter has seen had a worker for nothing. */
    void leave() {
        if (!isTaken()) release(Outcome.CANCEL);
    }

    void release(Outcome outcome) {
        state.set(State.OVER);
        if (permit != null) permit.release(outcome);
        over();
    }

    /** When a retry of such a request may help, in whole seconds, as ../../spec/wire.md of PathFence has it. */
    long retryAfter() {
        long drain = Math.min(Math.max(fence.drain(context.path()), 1), MAX_RETRY_AFTER);
        long seconds = (drain + SECOND - 1) / SECOND;
        return seconds + ThreadLocalRandom.current().nextLong(seconds + 1);
    }

    /** Its path's. */
    String key() {
        return context.path();
    }

    /** The class that it was granted in, or is refused in. */
    String className() {
        Permit p = permit;
        if (p != null) return p.className();
        // Asked for by each who is told, where there is too much to do: the fence's lock is taken once.
        if (refusedIn == null) refusedIn = fence.className(context.path());
        return refusedIn;
    }

    /** How long it took to be granted or refused, in nanoseconds. */
    long waited() {
        return decidedAt - since;
    }

    @Override
    public void onComplete(AsyncEvent event) {
        if (!abandon()) leave();
    }

    @Override
    public void onTimeout(AsyncEvent event) {
        // The server goes on to an error, or whoever listens answers: onComplete is the end.
    }

    @Override
    public void onError(AsyncEvent event) {
        // onComplete is the end.
    }

    @Override
    public void onStartAsync(AsyncEvent event) {
        // The application's: what it starts holds no worker.
    }
}
