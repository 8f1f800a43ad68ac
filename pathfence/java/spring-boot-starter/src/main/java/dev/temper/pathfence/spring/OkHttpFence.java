// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.spring;

import dev.temper.pathfence.Serving;
import okhttp3.Call;
import okhttp3.EventListener;
import okhttp3.OkHttpClient;

/**
 * Tells the fence what OkHttp calls. Interceptors of an asynchronous call run on a thread of OkHttp's, which serves no
 * request; an event listener is made where the call is.
 */
final class OkHttpFence implements EventListener.Factory {
    private final EventListener.Factory listeners;
    private final Edges edges;

    private OkHttpFence(EventListener.Factory listeners, Edges edges) {
        this.listeners = listeners;
        this.edges = edges;
    }

    /** The same client, with the same connections; one of the application's own class is left alone. */
    static OkHttpClient seen(OkHttpClient client, Edges edges) {
        if (client.getClass() != OkHttpClient.class) return client;
        return client.newBuilder()
                .eventListenerFactory(new OkHttpFence(client.eventListenerFactory(), edges))
                .build();
    }

    @Override
    public EventListener create(Call call) {
        Serving.calls(edges.of(call.request().url().uri()));
        return listeners.create(call);
    }
}
