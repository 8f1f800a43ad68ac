// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.spring;

import dev.temper.pathfence.Call;
import dev.temper.pathfence.Fence;
import dev.temper.pathfence.PathContext;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.util.Collections;
import java.util.List;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.springframework.util.function.SingletonSupplier;
import org.springframework.http.server.PathContainer;
import org.springframework.web.util.pattern.PathPattern;
import org.springframework.web.util.pattern.PathPatternParser;

/** Where a request comes in: whether it is fenced, and what it asks the fence for. */
final class Admission {
    private static final System.Logger LOG = System.getLogger(Admission.class.getName());
    private static final long CIRCLE = 8; // a chain that is here more often is refused
    private static final String ATTRIBUTE = FencedRequest.class.getName();

    private final Fence fence;
    private final RequestKeys keys;
    private final Within within;
    private final String service;
    private final boolean trusted;
    private final Supplier<List<PathPattern>> exempt;
    private final List<FenceListener> listeners;

    /**
     * @param fence decides
     * @param keys from a request to its key
     * @param within knows calls of this process to itself
     * @param service this service's name in visits; empty: re-entry is not seen
     * @param trusted whether peers may choose keys and depths
     * @param exempt path patterns that are not fenced; asked for at the first request
     * @param listeners hear of each request that is fenced
     */
    Admission(
            Fence fence,
            RequestKeys keys,
            Within within,
            String service,
            boolean trusted,
            Supplier<List<String>> exempt,
            List<FenceListener> listeners) {
        this.fence = fence;
        this.keys = keys;
        this.within = within;
        this.service = service;
        this.trusted = trusted;
        this.exempt = SingletonSupplier.of(() ->
                exempt.get().stream().map(PathPatternParser.defaultInstance::parse).toList());
        this.listeners = listeners;
    }

    /** What a request is to the fence, once it has been admitted; or null. */
    static FencedRequest of(ServletRequest request) {
        return (FencedRequest) request.getAttribute(ATTRIBUTE);
    }

    boolean isExempt(HttpServletRequest request) {
        PathContainer path = RouteKeys.path(request);
        return exempt.get().stream().anyMatch(p -> p.matches(path));
    }

    /** Asks the fence for a worker; null if the request needs none. */
    FencedRequest admit(HttpServletRequest request) {
        if (isExempt(request)) return null;
        long since = System.nanoTime();
        PathContext context = context(request);
        FencedRequest r = new FencedRequest(trusted ? context : context.withoutTime(), service, since);
        request.setAttribute(ATTRIBUTE, r);
        Within.Caller caller = within.take(request.getHeader(Within.HEADER));
        Call call = context.call(service, trusted);
        long depth = Math.max(caller.depth(), call.depth());
        r.submit(fence, call.at(depth), depth > CIRCLE ? 0 : caller.permit());
        return r;
    }

    /** To be called before it waits: afterwards it is another thread's. */
    void tellWaits(FencedRequest r, HttpServletRequest request, HttpServletResponse response) {
        tell(l -> l.waits(r, request, response));
    }

    void tellGranted(FencedRequest r, HttpServletRequest request, HttpServletResponse response) {
        tell(l -> l.granted(r, request, response));
    }

    void tellRefused(FencedRequest r, HttpServletRequest request, HttpServletResponse response) {
        tell(l -> l.refused(r, request, response));
    }

    /** What an application's own conventions and handlers throw must not cost a request that has a worker, or waits for one. */
    private void tell(Consumer<FenceListener> what) {
        for (FenceListener l : listeners) guarded(() -> what.accept(l));
    }

    static void guarded(Runnable told) {
        try {
            told.run();
        } catch (Throwable e) {
            LOG.log(System.Logger.Level.ERROR, "a request at the fence could not be told to metrics or traces", e);
        }
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
}
