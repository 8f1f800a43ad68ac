// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.spring;

import dev.temper.pathfence.Fence;
import dev.temper.pathfence.Outcome;
import dev.temper.pathfence.PathContext;
import dev.temper.pathfence.Serving;
import jakarta.servlet.DispatcherType;
import jakarta.servlet.Filter;
import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.util.Collections;
import java.util.List;
import org.springframework.http.server.PathContainer;
import org.springframework.web.util.pattern.PathPattern;
import org.springframework.web.util.pattern.PathPatternParser;

/**
 * Holds a request back before work starts on it: it is parked without a thread, and dispatched when it is granted. It
 * must be the first filter, for requests and asynchronous dispatches.
 */
public final class FenceFilter implements Filter {
    private static final String ATTRIBUTE = FenceFilter.class.getName();

    private final Fence fence;
    private final RequestKeys keys;
    private final String service;
    private final boolean trusted;
    private final List<PathPattern> exempt;

    /**
     * A filter.
     *
     * @param fence decides
     * @param keys from a request to its key
     * @param service this service's name in visits; empty: re-entry is not seen
     * @param trusted whether peers may choose keys and depths
     * @param exempt path patterns that are not fenced
     */
    public FenceFilter(Fence fence, RequestKeys keys, String service, boolean trusted, List<String> exempt) {
        this.fence = fence;
        this.keys = keys;
        this.service = service;
        this.trusted = trusted;
        this.exempt = exempt.stream().map(PathPatternParser.defaultInstance::parse).toList();
    }

    @Override
    public void doFilter(ServletRequest in, ServletResponse out, FilterChain chain)
            throws IOException, ServletException {
        HttpServletRequest request = (HttpServletRequest) in;
        HttpServletResponse response = (HttpServletResponse) out;
        FencedRequest known = (FencedRequest) request.getAttribute(ATTRIBUTE);
        if (known != null) {
            serve(known, request, response, chain);
        } else if (request.getDispatcherType() != DispatcherType.REQUEST || isExempt(request)) {
            chain.doFilter(request, response);
        } else {
            admit(request, response, chain);
        }
    }

    private boolean isExempt(HttpServletRequest request) {
        PathContainer path = RouteKeys.path(request);
        return exempt.stream().anyMatch(p -> p.matches(path));
    }

    private void admit(HttpServletRequest request, HttpServletResponse response, FilterChain chain)
            throws IOException, ServletException {
        long since = System.nanoTime();
        PathContext context = context(request);
        FencedRequest r = new FencedRequest(context, service, since, response);
        request.setAttribute(ATTRIBUTE, r);
        r.submit(fence, context.call(service, trusted));
        if (!r.park(request)) serve(r, request, response, chain);
    }

    private PathContext context(HttpServletRequest request) {
        PathContext said = PathContext.readHttp(name -> header(request, name));
        PathContext context = trusted ? said : said.untrusted();
        return context.path().isEmpty() ? context.withPath(keys.key(request)) : context;
    }

    private static String header(HttpServletRequest request, String name) {
        if (!name.equals("baggage")) return request.getHeader(name);
        List<String> all = Collections.list(request.getHeaders(name));
        return all.isEmpty() ? null : String.join(",", all);
    }

    /** Runs what comes after this filter, with the permit; or refuses. */
    private static void serve(
            FencedRequest r, HttpServletRequest request, HttpServletResponse response, FilterChain chain)
            throws IOException, ServletException {
        if (r.refused() != null) {
            FencedRequest.refuse(response, r.refused());
            return;
        }
        Outcome outcome = Outcome.FAIL;
        try (Serving.Scope here = r.serving().enter()) {
            chain.doFilter(request, response);
            outcome = response.getStatus() >= 500 ? Outcome.FAIL : Outcome.OK;
        } catch (IOException | ServletException | RuntimeException e) {
            ShedDownstreamException shed = shedBelow(e);
            if (clientIsGone(e)) outcome = Outcome.CANCEL;
            if (shed == null || response.isCommitted()) throw e;
            FencedRequest.refuse(response, shed.reason());
        } finally {
            // What goes on asynchronously is released at its end.
            if (!request.isAsyncStarted() || !r.follow(request)) r.release(outcome);
        }
    }

    private static ShedDownstreamException shedBelow(Throwable thrown) {
        for (Throwable e = thrown; e != null; e = e.getCause()) if (e instanceof ShedDownstreamException s) return s;
        return null;
    }

    /** Each server has an exception of its own for a client that went away. */
    static boolean clientIsGone(Throwable thrown) {
        for (Throwable e = thrown; e != null; e = e.getCause()) {
            String name = e.getClass().getSimpleName();
            if (name.equals("ClientAbortException")
                    || name.equals("EofException")
                    || name.equals("AsyncRequestNotUsableException")) return true;
        }
        return false;
    }
}
