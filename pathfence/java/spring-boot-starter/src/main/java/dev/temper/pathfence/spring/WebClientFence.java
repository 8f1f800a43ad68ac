// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.spring;

import dev.temper.pathfence.PathContext;
import dev.temper.pathfence.Serving;
import java.util.function.BiConsumer;
import org.springframework.web.reactive.function.client.ClientRequest;
import org.springframework.web.reactive.function.client.ClientResponse;
import org.springframework.web.reactive.function.client.ExchangeFilterFunction;
import org.springframework.web.reactive.function.client.ExchangeFunction;
import reactor.core.publisher.Mono;

/** As {@link RestClientFence}, for calls that are made on the thread that serves the request. */
final class WebClientFence implements ExchangeFilterFunction {
    private final Edges edges;
    private final Within within;
    private final boolean propagate;

    WebClientFence(Edges edges, Within within, boolean propagate) {
        this.edges = edges;
        this.within = within;
        this.propagate = propagate;
    }

    @Override
    public Mono<ClientResponse> filter(ClientRequest request, ExchangeFunction next) {
        String edge = edges.of(request.url());
        PathContext onward = Serving.calls(edge);
        ClientRequest.Builder sent = ClientRequest.from(request);
        if (propagate) {
            BiConsumer<String, String> header = (name, value) -> sent.headers(h -> h.set(name, value));
            onward.writeHttp(header);
            within.write(header);
        }
        return next.exchange(sent.build()).flatMap(response -> {
            String shed = response.headers().asHttpHeaders().getFirst("x-pf-shed");
            if (shed == null) return Mono.just(response);
            return response.releaseBody().then(Mono.error(new ShedDownstreamException(edge, shed)));
        });
    }
}
