// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.spring;

import dev.temper.pathfence.Outcome;
import dev.temper.pathfence.Serving;
import jakarta.servlet.DispatcherType;
import jakarta.servlet.Filter;
import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletRequestWrapper;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * Serves a request that the server's part of the fence has let in, and gives its permit back. It is the first filter, for
 * requests and asynchronous dispatches.
 */
final class FenceFilter implements Filter {
    private static final System.Logger LOG = System.getLogger(FenceFilter.class.getName());

    private static final String MOCK = "org.springframework.mock.web.MockHttpServletRequest";
    private static final String NOT_SEEN = "PathFence has not seen this request: it stands before the requests of Spring"
            + " Boot's embedded Tomcat or Jetty only; use one of them, or set pathfence.enabled to false";

    private final Admission admission;
    private final Refusals refusals;
    private final boolean inServer;
    private final AtomicBoolean told = new AtomicBoolean();

    /**
     * @param admission whose requests it serves
     * @param refusals answers those that are refused
     * @param inServer whether there is a server that admits them; not so in a server that the application is deployed to
     */
    FenceFilter(Admission admission, Refusals refusals, boolean inServer) {
        this.admission = admission;
        this.refusals = refusals;
        this.inServer = inServer;
    }

    @Override
    public void doFilter(ServletRequest in, ServletResponse out, FilterChain chain)
            throws IOException, ServletException {
        HttpServletRequest request = (HttpServletRequest) in;
        FencedRequest admitted = Admission.of(request);
        if (admitted != null && admitted.refused() != null) {
            refuse(admitted, request, (HttpServletResponse) out);
        } else if (admitted != null) {
            serve(admitted, request, (HttpServletResponse) out, chain);
        } else if (request.getDispatcherType() != DispatcherType.REQUEST || admission.isExempt(request) || isMock(request)) {
            chain.doFilter(in, out);
        } else if (inServer) {
            throw new IllegalStateException(NOT_SEEN);
        } else {
            if (!told.getAndSet(true)) LOG.log(System.Logger.Level.WARNING, NOT_SEEN);
            chain.doFilter(in, out);
        }
    }

    /** Whether it is one of MockMvc's, which go past the server, also in tests that have one. */
    private static boolean isMock(ServletRequest request) {
        ServletRequest inner = request;
        while (inner instanceof ServletRequestWrapper w) inner = w.getRequest();
        for (Class<?> c = inner.getClass(); c != null; c = c.getSuperclass()) if (c.getName().equals(MOCK)) return true;
        return false;
    }

    private void refuse(FencedRequest r, HttpServletRequest request, HttpServletResponse response)
            throws IOException, ServletException {
        admission.tellRefused(r, request, response);
        refusals.write(r, r.refused(), request, response);
    }

    /** Runs what comes after this filter, with the permit. */
    private void serve(FencedRequest r, HttpServletRequest request, HttpServletResponse response, FilterChain chain)
            throws IOException, ServletException {
        if (!r.isTaken()) admission.tellGranted(r, request, response);
        r.take();
        Outcome outcome = Outcome.FAIL;
        try (Serving.Scope here = r.serving().enter()) {
            chain.doFilter(request, response);
            outcome = outcome(response.getStatus());
        } catch (IOException | ServletException | RuntimeException e) {
            ShedDownstreamException shed = shedBelow(e);
            if (clientIsGone(e)) outcome = Outcome.CANCEL;
            if (shed == null || response.isCommitted()) throw e;
            refusals.write(r, shed.reason(), request, response);
        } finally {
            // What goes on asynchronously does so without a worker; a dispatch that resumes it takes one again.
            r.release(request.isAsyncStarted() ? Outcome.LIGHT : outcome);
        }
    }

    /** Who is turned away, sent elsewhere, or has asked for nothing that there is, was no work like the others'. */
    private static Outcome outcome(int status) {
        if (status >= 500) return Outcome.FAIL;
        return status >= 200 && status < 300 ? Outcome.OK : Outcome.LIGHT;
    }

    private static ShedDownstreamException shedBelow(Throwable thrown) {
        for (Throwable e = thrown; e != null; e = e.getCause()) if (e instanceof ShedDownstreamException s) return s;
        return null;
    }

    /** Each server has an exception of its own for a client that went away. */
    private static boolean clientIsGone(Throwable thrown) {
        for (Throwable e = thrown; e != null; e = e.getCause()) {
            String name = e.getClass().getSimpleName();
            if (name.equals("ClientAbortException")
                    || name.equals("EofException")
                    || name.equals("AsyncRequestNotUsableException")) return true;
        }
        return false;
    }
}
