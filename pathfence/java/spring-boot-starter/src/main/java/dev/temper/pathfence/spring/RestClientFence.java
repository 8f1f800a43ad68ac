// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.spring;

import dev.temper.pathfence.PathContext;
import dev.temper.pathfence.Serving;
import java.io.IOException;
import org.springframework.http.HttpRequest;
import org.springframework.http.client.ClientHttpRequestExecution;
import org.springframework.http.client.ClientHttpRequestInterceptor;
import org.springframework.http.client.ClientHttpResponse;

/** Tells the fence which edges a request uses, sends on what travels with it, and knows a refusal. */
final class RestClientFence implements ClientHttpRequestInterceptor {
    private final Edges edges;
    private final Within within;
    private final boolean propagate;

    RestClientFence(Edges edges, Within within, boolean propagate) {
        this.edges = edges;
        this.within = within;
        this.propagate = propagate;
    }

    @Override
    public ClientHttpResponse intercept(HttpRequest request, byte[] body, ClientHttpRequestExecution execution)
            throws IOException {
        String edge = edges.of(request.getURI());
        PathContext onward = Serving.calls(edge);
        if (propagate) {
            onward.writeHttp(request.getHeaders()::set);
            within.write(request.getHeaders()::set);
        }
        ClientHttpResponse response = execution.execute(request, body);
        String shed = response.getHeaders().getFirst("x-pf-shed");
        if (shed == null) return response;
        response.close();
        throw new ShedDownstreamException(edge, shed);
    }
}
