// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.spring;

import dev.temper.pathfence.Serving;
import java.io.IOException;
import org.springframework.http.HttpRequest;
import org.springframework.http.client.ClientHttpRequestExecution;
import org.springframework.http.client.ClientHttpRequestInterceptor;
import org.springframework.http.client.ClientHttpResponse;

/** {@link Outgoing} for RestClient. */
final class RestClientFence implements ClientHttpRequestInterceptor {
    private final Outgoing outgoing;

    RestClientFence(Outgoing outgoing) {
        this.outgoing = outgoing;
    }

    @Override
    public ClientHttpResponse intercept(HttpRequest request, byte[] body, ClientHttpRequestExecution execution)
            throws IOException {
        return answered(outgoing, request, () -> execution.execute(request, body));
    }

    /** How a request is answered. */
    interface Execution {
        ClientHttpResponse execute() throws IOException;
    }

    /** Tells of a call, sends on what a peer is sent, and throws a peer's refusal. */
    static ClientHttpResponse answered(Outgoing outgoing, HttpRequest request, Execution execution) throws IOException {
        Runnable over = outgoing.calls(request.getURI()).send(request.getHeaders()::set);
        ClientHttpResponse response;
        try (Serving.Scope call = Serving.within()) {
            response = execution.execute();
        } finally {
            over.run();
        }
        var refusal = outgoing.refusal(
                request.getURI(), response.getStatusCode().value(), response.getHeaders().getFirst(Outgoing.SHED));
        if (refusal.isEmpty()) return response;
        response.close();
        throw refusal.get();
    }
}
