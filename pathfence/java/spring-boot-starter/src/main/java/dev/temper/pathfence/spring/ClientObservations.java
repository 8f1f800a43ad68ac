// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.spring;

import dev.temper.pathfence.Serving;
import io.micrometer.common.KeyValue;
import io.micrometer.observation.Observation;
import io.micrometer.observation.ObservationHandler;
import io.micrometer.observation.ObservationView;
import io.micrometer.observation.transport.Kind;
import io.micrometer.observation.transport.SenderContext;
import java.util.Optional;
import java.util.stream.Stream;

/**
 * Tells the fence what observed clients call, where the observation starts; where it stops does not matter. That may be on a
 * thread of the client's, as with Lettuce: the observation's parents know the request. While an observation is its thread's
 * current one, what else is called is a part of the call.
 */
final class ClientObservations implements ObservationHandler<Observation.Context> {
    /** Data sources are seen without; these name them otherwise. */
    private static final String JDBC = "net.ttddyy.observation.";

    private final Edges edges;
    private final boolean jdbc;

    /**
     * @param edges names addresses
     * @param jdbc whether observations of data sources count
     */
    ClientObservations(Edges edges, boolean jdbc) {
        this.edges = edges;
        this.jdbc = jdbc;
    }

    /** Scopes of one observation that one thread has open. */
    private record Opened(Serving.Scope scope, Opened before) {}

    @Override
    public boolean supportsContext(Observation.Context context) {
        return true;
    }

    private boolean isCall(Observation.ContextView context) {
        return context instanceof SenderContext<?> s
                && s.getKind() == Kind.CLIENT
                && (jdbc || !s.getClass().getName().startsWith(JDBC));
    }

    @Override
    public void onStart(Observation.Context context) {
        Optional<Serving> here = Serving.here();
        if (!isCall(context)) here.ifPresent(s -> context.put(Serving.class, s));
        else if (here.isPresent()) Serving.calls(name((SenderContext<?>) context));
        else above(context).ifPresent(s -> s.permit().edge(name((SenderContext<?>) context)));
    }

    /** Whose request it is by its parents; nobody's if one of them is a call, of which this is a part. */
    private Optional<Serving> above(Observation.ContextView context) {
        ObservationView parent = context.getParentObservation();
        if (parent == null || isCall(parent.getContextView())) return Optional.empty();
        Serving request = parent.getContextView().get(Serving.class);
        return request == null ? above(parent.getContextView()) : Optional.of(request);
    }

    @Override
    public void onScopeOpened(Observation.Context call) {
        if (!isCall(call)) return;
        Thread here = Thread.currentThread();
        call.put(here, new Opened(Serving.within(), call.get(here)));
    }

    @Override
    public void onScopeClosed(Observation.Context call) {
        Thread here = Thread.currentThread();
        Opened last = call.get(here);
        if (last == null) return;
        last.scope.close();
        if (last.before == null) call.remove(here);
        else call.put(here, last.before);
    }

    @Override
    @SuppressWarnings("deprecation") // Micrometer still calls it.
    public void onScopeReset(Observation.Context call) {
        while (call.get(Thread.currentThread()) != null) onScopeClosed(call);
    }

    /** As other hooks name it, where it has an address that is known; else as it names itself. */
    private String name(SenderContext<?> call) {
        return Carriers.address(call).map(edges::of).filter(n -> !n.isEmpty()).orElseGet(() -> Stream.of(
                        call.getRemoteServiceName(),
                        call.getRemoteServiceAddress(),
                        value(call, "server.address"),
                        value(call, "net.peer.name"),
                        call.getName())
                .map(edges::named)
                .filter(n -> !n.isEmpty())
                .findFirst()
                .orElse(""));
    }

    private static String value(SenderContext<?> call, String key) {
        KeyValue low = call.getLowCardinalityKeyValue(key);
        KeyValue value = low == null ? call.getHighCardinalityKeyValue(key) : low;
        return value == null ? null : value.getValue();
    }
}
