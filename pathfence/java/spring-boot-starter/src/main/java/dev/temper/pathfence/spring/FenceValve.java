// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.spring;

import jakarta.servlet.AsyncContext;
import jakarta.servlet.RequestDispatcher;
import jakarta.servlet.ServletException;
import java.io.IOException;
import org.apache.catalina.connector.Request;
import org.apache.catalina.connector.Response;
import org.apache.catalina.valves.ValveBase;
import org.apache.coyote.ActionCode;

/**
 * The fence before Tomcat's hosts. A request that waits does so as an asynchronous one; when it is decided, the server takes
 * it up again, and from here on it is a request like any other. As an asynchronous dispatch, which is what servlets know
 * for this, it would go past all filters that are registered for requests only, those that authenticate among them.
 */
final class FenceValve extends ValveBase {
    private final Admission admission;

    FenceValve(Admission admission) {
        super(true);
        this.admission = admission;
    }

    @Override
    public void invoke(Request request, Response response) throws IOException, ServletException {
        FencedRequest known = Admission.of(request);
        if (known == null) {
            admit(request, response);
        } else if (known.isDecided() && request.isAsyncDispatching() && !known.isTaken()) {
            takeUp(known, request, response);
        } else {
            getNext().invoke(request, response); // dispatched by the application, rewritten, or ended by the server
        }
    }

    private void takeUp(FencedRequest r, Request request, Response response) throws IOException, ServletException {
        request.getCoyoteRequest().action(ActionCode.ASYNC_DISPATCHED, null);
        request.getCoyoteRequest().setSendfile(false); // which Tomcat does only for requests that have not waited
        serve(r, request, response);
        // The host has reported the error. The connector would do so again, as after an asynchronous dispatch, if the
        // application did not begin something asynchronous that failed.
        if (!request.isAsync()
                || request.isAsyncCompleting()
                || request.getAttribute(RequestDispatcher.ERROR_EXCEPTION) == null) response.resetError();
    }

    private void admit(Request request, Response response) throws IOException, ServletException {
        FencedRequest r = request.getContext() == null ? null : admission.admit(request);
        if (r == null) getNext().invoke(request, response);
        else if (r.isDecided()) serve(r, request, response);
        else {
            admission.tellWaits(r, request.getRequest(), response.getResponse());
            park(r, request);
        }
    }

    private void serve(FencedRequest r, Request request, Response response) throws IOException, ServletException {
        try {
            getNext().invoke(request, response);
        } finally {
            r.leave();
        }
    }

    private static void park(FencedRequest r, Request request) {
        AsyncContext async;
        try {
            async = request.startAsync();
        } catch (IllegalStateException e) {
            r.withdraw();
            throw new IllegalStateException(
                    "a request cannot wait without a thread: a valve that comes before the fence's does not support"
                            + " asynchronous requests; let it (asyncSupported), or put it after",
                    e);
        }
        long since = System.nanoTime();
        async.setTimeout(0); // how long it waits is the fence's to say
        async.addListener(r);
        // Not AsyncContext.dispatch(): see above. getRequest() throws where the server has ended the request, whose parts are
        // others' by then.
        r.parkAnyway(() -> {
            async.getRequest();
            // Tomcat forgets what its threads do not take; then this brings it back.
            long limit = request.getConnector().getAsyncTimeout();
            if (limit > 0) async.setTimeout((System.nanoTime() - since) / 1_000_000 + limit);
            request.getCoyoteRequest().action(ActionCode.ASYNC_DISPATCH, null);
        });
    }
}
