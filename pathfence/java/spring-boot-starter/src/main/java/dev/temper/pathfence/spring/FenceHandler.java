// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.spring;

import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Function;
import org.eclipse.jetty.io.IdleTimeout;
import org.eclipse.jetty.server.Handler;
import org.eclipse.jetty.server.HttpStream;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.Response;
import org.eclipse.jetty.util.Callback;

/** The fence before Jetty's servlets: a request that waits has not begun for them. */
final class FenceHandler extends Handler.Wrapper {
    /** What servlets see of a request; the classes that have it are others in each Jetty. */
    record Servlet(HttpServletRequest request, HttpServletResponse response) {}

    private final Admission admission;
    private final Function<Request, Servlet> servlets;

    /**
     * @param admission lets requests in
     * @param servlets from a request to what servlets see of it, or null
     */
    FenceHandler(Admission admission, Function<Request, Servlet> servlets) {
        this.admission = admission;
        this.servlets = servlets;
    }

    @Override
    public boolean handle(Request request, Response response, Callback callback) throws Exception {
        Servlet servlet = servlets.apply(request);
        FencedRequest r = servlet == null ? null : admission.admit(servlet.request);
        if (r == null) return super.handle(request, response, callback);
        Request.addCompletionListener(request, failure -> r.leave());
        if (r.isDecided()) return super.handle(request, response, callback);
        admission.tellWaits(r, servlet.request, servlet.response);
        Idle idle = Idle.off(request); // how long it waits is the fence's to say
        request.addFailureListener(failure -> {
            if (r.abandon()) callback.failed(failure);
        });
        boolean parked = r.park(() -> {
            idle.on();
            resume(request, response, callback);
        });
        if (parked) return true;
        idle.on();
        return super.handle(request, response, callback);
    }

    /** The idle timeout of a request's stream, off and on again. A listener cannot do it: servlets' own says yes before. */
    private record Idle(Request request, HttpStream stream, long timeout) {
        static Idle off(Request request) {
            AtomicReference<HttpStream> stream = new AtomicReference<>();
            request.addHttpStreamWrapper(s -> {
                stream.set(s);
                return s;
            });
            Idle idle = new Idle(request, stream.get(), stream.get().getIdleTimeout());
            stream.get().setIdleTimeout(0);
            return idle;
        }

        void on() {
            // From now on: or the time that it waited would count.
            if (request.getConnectionMetaData().getConnection().getEndPoint() instanceof IdleTimeout e) e.notIdle();
            stream.setIdleTimeout(timeout);
        }
    }

    private void resume(Request request, Response response, Callback callback) {
        try {
            request.getContext().execute(() -> resumed(request, response, callback));
        } catch (RejectedExecutionException e) {
            callback.failed(e);
            throw e;
        }
    }

    private void resumed(Request request, Response response, Callback callback) {
        try {
            if (!super.handle(request, response, callback)) Response.writeError(request, response, callback, 404);
        } catch (Throwable e) {
            Response.writeError(request, response, callback, e);
        }
    }
}
