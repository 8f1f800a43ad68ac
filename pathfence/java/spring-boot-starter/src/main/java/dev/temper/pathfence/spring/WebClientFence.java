// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.spring;

import org.springframework.web.reactive.function.client.ClientRequest;
import org.springframework.web.reactive.function.client.ClientResponse;
import org.springframework.web.reactive.function.client.ExchangeFilterFunction;
import org.springframework.web.reactive.function.client.ExchangeFunction;
import reactor.core.publisher.Mono;

/** {@link Outgoing} for WebClient, for calls that are made on the thread that serves the request. */
final class WebClientFence implements ExchangeFilterFunction {
    private final Outgoing outgoing;

    WebClientFence(Outgoing outgoing) {
        this.outgoing = outgoing;
    }

    @Override
    public Mono<ClientResponse> filter(ClientRequest request, ExchangeFunction next) {
        Outgoing.Noted call = outgoing.calls(request.url());
        // Whoever asks again subscribes again, and what is never asked for has no name to be forgotten.
        Mono<ClientResponse> answer = Mono.defer(() -> {
            ClientRequest.Builder sent = ClientRequest.from(request);
            Runnable over = call.send((name, value) -> sent.headers(h -> h.set(name, value)));
            return next.exchange(sent.build()).doFinally(how -> over.run());
        });
        return answer.flatMap(response -> {
            var refusal = outgoing.refusal(
                    request.url(),
                    response.statusCode().value(),
                    response.headers().asHttpHeaders().getFirst(Outgoing.SHED));
            return refusal.isEmpty()
                    ? Mono.just(response)
                    : response.releaseBody().then(Mono.error(refusal.get()));
        });
    }
}
