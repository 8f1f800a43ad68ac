// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.spring;

import java.util.concurrent.RejectedExecutionException;
import org.eclipse.jetty.ee11.servlet.ServletContextRequest;
import org.eclipse.jetty.server.Handler;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.Response;
import org.eclipse.jetty.util.Callback;

/** The fence before Jetty's servlets: a request that waits has not begun for them. */
final class FenceHandler extends Handler.Wrapper {
    private final Admission admission;

    FenceHandler(Admission admission) {
        this.admission = admission;
    }

    @Override
    public boolean handle(Request request, Response response, Callback callback) throws Exception {
        ServletContextRequest servlet = Request.as(request, ServletContextRequest.class);
        FencedRequest r = servlet == null ? null : admission.admit(servlet.getServletApiRequest());
        if (r == null) return super.handle(request, response, callback);
        Request.addCompletionListener(request, failure -> r.leave());
        if (r.isDecided()) return serve(r, request, response, callback);
        request.addIdleTimeoutListener(timeout -> false); // how long it waits is the fence's to say
        request.addFailureListener(failure -> {
            if (r.abandon()) callback.failed(failure);
        });
        return r.park(() -> resume(r, request, response, callback)) || serve(r, request, response, callback);
    }

    private void resume(FencedRequest r, Request request, Response response, Callback callback) {
        try {
            request.getContext().execute(() -> resumed(r, request, response, callback));
        } catch (RejectedExecutionException e) {
            callback.failed(e);
            throw e;
        }
    }

    private void resumed(FencedRequest r, Request request, Response response, Callback callback) {
        try {
            if (!serve(r, request, response, callback)) Response.writeError(request, response, callback, 404);
        } catch (Throwable e) {
            Response.writeError(request, response, callback, e);
        }
    }

    private boolean serve(FencedRequest r, Request request, Response response, Callback callback) throws Exception {
        if (r.refused() == null) return super.handle(request, response, callback);
        response.setStatus(503);
        response.getHeaders().put("x-pf-shed", r.refused());
        response.getHeaders().put("retry-after", "1");
        response.getHeaders().put("content-length", 0);
        response.write(true, null, callback);
        return true;
    }
}
