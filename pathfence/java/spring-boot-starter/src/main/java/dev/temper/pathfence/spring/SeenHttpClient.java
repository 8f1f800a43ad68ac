// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.spring;

import dev.temper.pathfence.Serving;
import java.io.IOException;
import java.lang.reflect.Method;
import java.net.Authenticator;
import java.net.CookieHandler;
import java.net.ProxySelector;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.WebSocket;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.stream.Stream;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLParameters;
import org.springframework.util.ReflectionUtils;

/** The JDK's client, which has no interceptors: one that tells the fence what it calls stands in its place. */
final class SeenHttpClient extends HttpClient {
    private final HttpClient client;
    private final Edges edges;

    SeenHttpClient(HttpClient client, Edges edges) {
        this.client = client;
        this.edges = edges;
    }

    /** One of the JDK's own; another's class may be asked for by its name. */
    static HttpClient seen(HttpClient client, Edges edges) {
        return client.getClass().getName().startsWith("jdk.internal.") ? new SeenHttpClient(client, edges) : client;
    }

    @Override
    public <T> HttpResponse<T> send(HttpRequest request, HttpResponse.BodyHandler<T> body)
            throws IOException, InterruptedException {
        try (Serving.Scope call = Serving.calling(edges.of(request.uri()))) {
            return client.send(request, body);
        }
    }

    @Override
    public <T> CompletableFuture<HttpResponse<T>> sendAsync(HttpRequest request, HttpResponse.BodyHandler<T> body) {
        try (Serving.Scope call = Serving.calling(edges.of(request.uri()))) {
            return client.sendAsync(request, body);
        }
    }

    @Override
    public <T> CompletableFuture<HttpResponse<T>> sendAsync(
            HttpRequest request, HttpResponse.BodyHandler<T> body, HttpResponse.PushPromiseHandler<T> pushed) {
        try (Serving.Scope call = Serving.calling(edges.of(request.uri()))) {
            return client.sendAsync(request, body, pushed);
        }
    }

    @Override
    public WebSocket.Builder newWebSocketBuilder() {
        return client.newWebSocketBuilder();
    }

    @Override
    public Optional<CookieHandler> cookieHandler() {
        return client.cookieHandler();
    }

    @Override
    public Optional<Duration> connectTimeout() {
        return client.connectTimeout();
    }

    @Override
    public Redirect followRedirects() {
        return client.followRedirects();
    }

    @Override
    public Optional<ProxySelector> proxy() {
        return client.proxy();
    }

    @Override
    public SSLContext sslContext() {
        return client.sslContext();
    }

    @Override
    public SSLParameters sslParameters() {
        return client.sslParameters();
    }

    @Override
    public Optional<Authenticator> authenticator() {
        return client.authenticator();
    }

    @Override
    public Version version() {
        return client.version();
    }

    @Override
    public Optional<Executor> executor() {
        return client.executor();
    }

    /** From Java 21 on a client can be ended; this overrides what it has for it then. */
    public void shutdown() {
        onClient("shutdown");
    }

    /** As {@link #shutdown}. */
    public void shutdownNow() {
        onClient("shutdownNow");
    }

    /** As {@link #shutdown}. */
    public void close() {
        onClient("close");
    }

    /**
     * As {@link #shutdown}.
     *
     * @return whether all its operations have ended
     */
    public boolean isTerminated() {
        return (Boolean) onClient("isTerminated");
    }

    /**
     * As {@link #shutdown}.
     *
     * @param within how long to wait
     * @return whether all its operations have ended
     */
    public boolean awaitTermination(Duration within) {
        return (Boolean) onClient("awaitTermination", within);
    }

    private Object onClient(String method, Object... with) {
        Class<?>[] types = Stream.of(with).map(Object::getClass).toArray(Class<?>[]::new);
        Method m = ReflectionUtils.findMethod(HttpClient.class, method, types);
        return ReflectionUtils.invokeMethod(m, client, with);
    }
}
