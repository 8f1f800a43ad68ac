// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.spring;

import jakarta.servlet.AsyncContext;
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
        } else if (known.isDecided() && !known.isTaken()) {
            request.getCoyoteRequest().action(ActionCode.ASYNC_DISPATCHED, null);
            serve(known, request, response);
        } else {
            getNext().invoke(request, response); // what the application has dispatched, or what the server ends
        }
    }

    private void admit(Request request, Response response) throws IOException, ServletException {
        FencedRequest r = request.getContext() == null ? null : admission.admit(request);
        if (r == null) getNext().invoke(request, response);
        else if (r.isDecided()) serve(r, request, response);
        else park(r, request);
    }

    private void serve(FencedRequest r, Request request, Response response) throws IOException, ServletException {
        if (r.refused() != null) {
            FencedRequest.refuse(response.getResponse(), r.refused());
            return;
        }
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
        async.setTimeout(0); // how long it waits is the fence's to say
        async.addListener(r);
        // Not AsyncContext.dispatch(): see above. getRequest() throws where the server has ended the request, whose parts are
        // others' by then.
        r.parkAnyway(() -> {
            async.getRequest();
            request.getCoyoteRequest().action(ActionCode.ASYNC_DISPATCH, null);
        });
    }
}
