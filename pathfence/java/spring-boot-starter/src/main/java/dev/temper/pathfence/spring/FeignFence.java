// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.spring;

import dev.temper.pathfence.Serving;
import feign.AsyncClient;
import feign.Capability;
import feign.Client;
import feign.Request;
import java.net.URI;

/** Tells the fence what Feign's clients call. Spring Cloud OpenFeign gives all beans of this type to each of its clients. */
public final class FeignFence implements Capability {
    private final Edges edges;

    FeignFence(Edges edges) {
        this.edges = edges;
    }

    @Override
    public Client enrich(Client client) {
        return (request, options) -> {
            try (Serving.Scope call = Serving.calling(edge(request))) {
                return client.execute(request, options);
            }
        };
    }

    @Override
    public AsyncClient<Object> enrich(AsyncClient<Object> client) {
        return (request, options, context) -> {
            try (Serving.Scope call = Serving.calling(edge(request))) {
                return client.execute(request, options, context);
            }
        };
    }

    private String edge(Request request) {
        try {
            return edges.of(URI.create(request.url()));
        } catch (IllegalArgumentException e) {
            return ""; // no address; the client will say so itself
        }
    }
}
