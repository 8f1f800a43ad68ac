// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.spring;

import dev.temper.pathfence.Serving;
import java.io.IOException;
import java.net.URI;
import java.util.List;
import org.apache.hc.client5.http.config.Configurable;
import org.apache.hc.client5.http.config.RequestConfig;
import org.apache.hc.client5.http.impl.classic.CloseableHttpClient;
import org.apache.hc.client5.http.impl.classic.CloseableHttpResponse;
import org.apache.hc.core5.http.ClassicHttpRequest;
import org.apache.hc.core5.http.HttpHost;
import org.apache.hc.core5.http.protocol.HttpContext;
import org.apache.hc.core5.io.CloseMode;

/** Apache's client, whose interceptors are chosen when it is built: one that tells the fence stands in its place. */
final class SeenApacheClient extends CloseableHttpClient implements Configurable {
    private final CloseableHttpClient client;
    private final Edges edges;

    SeenApacheClient(CloseableHttpClient client, Edges edges) {
        this.client = client;
        this.edges = edges;
    }

    /** One of the library's own classes; what else there is may be asked for by its class, and do things its own way. */
    static CloseableHttpClient seen(CloseableHttpClient client, Edges edges) {
        String own = CloseableHttpClient.class.getPackageName();
        boolean known = List.of(own + ".InternalHttpClient", own + ".MinimalHttpClient").contains(client.getClass().getName());
        return known ? new SeenApacheClient(client, edges) : client;
    }

    @Override
    @SuppressWarnings("deprecation") // The others close the answer, which is the caller's here.
    protected CloseableHttpResponse doExecute(HttpHost target, ClassicHttpRequest request, HttpContext context)
            throws IOException {
        try (Serving.Scope call = Serving.calling(edge(target, request))) {
            return client.execute(target, request, context);
        }
    }

    private String edge(HttpHost target, ClassicHttpRequest request) {
        String host = target == null ? String.valueOf(request.getAuthority()) : target.toHostString();
        try {
            return edges.of(URI.create("http://" + host));
        } catch (IllegalArgumentException e) {
            return ""; // no address; the client will say so itself
        }
    }

    @Override
    public RequestConfig getConfig() {
        return client instanceof Configurable c ? c.getConfig() : RequestConfig.DEFAULT;
    }

    @Override
    public void close() throws IOException {
        client.close();
    }

    @Override
    public void close(CloseMode mode) {
        client.close(mode);
    }
}
