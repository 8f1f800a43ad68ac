// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.spring;

import dev.temper.pathfence.Call;
import dev.temper.pathfence.Fence;
import dev.temper.pathfence.Outcome;
import dev.temper.pathfence.PathContext;
import dev.temper.pathfence.Permit;
import dev.temper.pathfence.Serving;
import jakarta.servlet.AsyncContext;
import jakarta.servlet.AsyncEvent;
import jakarta.servlet.AsyncListener;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
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

    private final PathContext context;
    private final String service;
    private final long since;
    private final HttpServletResponse response;
    private final AtomicReference<State> state = new AtomicReference<>(State.NEW);
    private Fence fence;
    private volatile long ticket;
    private volatile AsyncContext parked;
    private volatile Permit permit;
    private volatile Serving serving;
    private volatile String refused;
    private volatile boolean clientGone;

    FencedRequest(PathContext context, String service, long since, HttpServletResponse response) {
        this.context = context;
        this.service = service;
        this.since = since;
        this.response = response;
    }

    void submit(Fence to, Call call) {
        fence = to;
        ticket = to.submit(call, this::granted, this::refused);
    }

    private void granted(Permit p) {
        permit = p;
        serving = new Serving(p, context, service, since);
        if (!decided()) p.release(Outcome.CANCEL);
    }

    private void refused(String reason) {
        refused = reason;
        decided();
    }

    /**
     * Sends a request that waits back through the server, whose thread does the rest: this is the fence's callback, and a
     * client that does not read must not hold it up. False: the server is done with the request.
     */
    private boolean decided() {
        if (state.compareAndSet(State.NEW, State.DECIDED)) return true;
        return state.compareAndSet(State.PARKED, State.DECIDED) && dispatched();
    }

    private boolean dispatched() {
        try {
            parked.dispatch();
            return true;
        } catch (IllegalStateException e) {
            return false; // the server has ended it
        }
    }

    /** Answers at once. */
    static void refuse(HttpServletResponse response, String reason) throws IOException {
        response.setStatus(HttpServletResponse.SC_SERVICE_UNAVAILABLE);
        response.setHeader("x-pf-shed", reason);
        response.setHeader("retry-after", "1");
        response.setContentLength(0);
        response.flushBuffer();
    }

    /** Lets the request wait without a thread; false if it is decided already. */
    boolean park(HttpServletRequest request) {
        if (state.get() == State.DECIDED) return false;
        try {
            AsyncContext async = request.startAsync();
            async.setTimeout(0); // how long it waits is the fence's to say
            async.addListener(this);
            parked = async;
        } catch (IllegalStateException e) {
            fence.cancel(ticket);
            release(Outcome.CANCEL);
            throw new IllegalStateException(
                    "a request cannot wait without a thread: a filter that comes before the fence's does not support"
                            + " asynchronous requests; let it (asyncSupported), or put it after",
                    e);
        }
        // Decided meanwhile: back through the server, as if it had been later.
        if (!state.compareAndSet(State.NEW, State.PARKED) && !dispatched()) release(Outcome.CANCEL);
        return true;
    }

    String refused() {
        return refused;
    }

    Serving serving() {
        return serving;
    }

    /** Releases the permit when what was started asynchronously is over; false: it is over already. */
    boolean follow(HttpServletRequest request) {
        try {
            request.getAsyncContext().addListener(this);
            return true;
        } catch (IllegalStateException e) {
            return false;
        }
    }

    void release(Outcome outcome) {
        state.set(State.OVER);
        if (permit != null) permit.release(outcome);
    }

    private Outcome outcome() {
        if (clientGone) return Outcome.CANCEL;
        return response.getStatus() >= 500 ? Outcome.FAIL : Outcome.OK;
    }

    @Override
    public void onComplete(AsyncEvent event) {
        State before = state.getAndSet(State.OVER);
        if (before == State.PARKED) fence.cancel(ticket);
        if (permit != null) permit.release(outcome());
    }

    @Override
    public void onTimeout(AsyncEvent event) {
        // The server goes on to an error, or whoever listens answers: onComplete is the end.
    }

    @Override
    public void onError(AsyncEvent event) {
        clientGone = clientGone || FenceFilter.clientIsGone(event.getThrowable());
    }

    @Override
    public void onStartAsync(AsyncEvent event) {
        event.getAsyncContext().addListener(this);
    }
}
