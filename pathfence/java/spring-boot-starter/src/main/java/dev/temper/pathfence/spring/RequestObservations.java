// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.spring;

import dev.temper.pathfence.Serving;
import io.micrometer.observation.Observation;
import io.micrometer.observation.ObservationHandler;
import io.micrometer.observation.ObservationRegistry;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.util.function.Function;
import java.util.function.Supplier;
import org.springframework.http.server.observation.ServerHttpObservationDocumentation;
import org.springframework.http.server.observation.ServerRequestObservationContext;
import org.springframework.http.server.observation.ServerRequestObservationConvention;
import org.springframework.web.filter.ServerHttpObservationFilter;

/**
 * Lets {@code http.server.requests}, and the span of a request, begin where a request begins to wait, and have those that
 * are refused. Spring's filter, which comes later, goes on with an observation that it finds, and ends it then. Whether it
 * has found it shows in its scope; what it has not found, which refused requests never are, ends here.
 */
final class RequestObservations implements FenceListener, ObservationHandler<ServerRequestObservationContext> {
    static final String GRANTED = "pathfence.granted";
    static final String REFUSED = "pathfence.refused";

    /** Where the filter looks, and puts its own. */
    private static final String FOUND = ServerHttpObservationFilter.class.getName() + ".observation";

    private final Supplier<ObservationRegistry> registry;
    private final ServerRequestObservationConvention convention;
    private final Function<HttpServletRequest, String> pattern;

    /**
     * @param registry asked for at the first request that waits or is refused
     * @param convention the filter's
     * @param pattern from a request to the pattern that would serve it, or null
     */
    RequestObservations(
            Supplier<ObservationRegistry> registry,
            ServerRequestObservationConvention convention,
            Function<HttpServletRequest, String> pattern) {
        this.registry = registry;
        this.convention = convention;
        this.pattern = pattern;
    }

    @Override
    public void waits(FencedRequest r, HttpServletRequest request, HttpServletResponse response) {
        start(r, request, response);
    }

    private void start(FencedRequest r, HttpServletRequest request, HttpServletResponse response) {
        ServerRequestObservationContext context = new ServerRequestObservationContext(request, response);
        Observation o = ServerHttpObservationDocumentation.HTTP_SERVLET_SERVER_REQUESTS
                .observation(null, convention, () -> context, registry.get())
                .start();
        if (o.isNoop()) return;
        request.setAttribute(FOUND, o);
        request.setAttribute(ServerHttpObservationFilter.CURRENT_OBSERVATION_CONTEXT_ATTRIBUTE, context);
        r.whenOver(() -> {
            if (!context.containsKey(RequestObservations.class)) o.stop();
        });
    }

    @Override
    public void granted(FencedRequest r, HttpServletRequest request, HttpServletResponse response) {
        if (!(request.getAttribute(FOUND) instanceof Observation o)) return; // it has not waited
        context(o).setResponse(response);
        context(o).put(Serving.class, r.serving()); // it began before the request was served: ClientObservations
        o.event(Observation.Event.of(GRANTED, "granted a worker of class " + r.className()));
    }

    @Override
    public void refused(FencedRequest r, HttpServletRequest request, HttpServletResponse response) {
        if (request.getAttribute(FOUND) == null) start(r, request, response);
        if (!(request.getAttribute(FOUND) instanceof Observation o)) return;
        context(o).setResponse(response);
        context(o).setPathPattern(pattern.apply(request));
        String why = r.refused() + " in class " + r.className();
        o.event(Observation.Event.of(REFUSED, why));
    }

    private static ServerRequestObservationContext context(Observation o) {
        return (ServerRequestObservationContext) o.getContextView();
    }

    @Override
    public void onScopeOpened(ServerRequestObservationContext context) {
        context.put(RequestObservations.class, true);
    }

    @Override
    public boolean supportsContext(Observation.Context context) {
        return context instanceof ServerRequestObservationContext;
    }
}
