// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.grpc;

import dev.temper.pathfence.PathContext;
import dev.temper.pathfence.Serving;
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientCall;
import io.grpc.ClientInterceptor;
import io.grpc.ForwardingClientCall.SimpleForwardingClientCall;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import java.util.concurrent.TimeUnit;

/**
 * A client's interceptor: tells the fence of the request that this thread serves which edge it uses, and sends on its
 * key, its visits, and its deadline as gRPC's own, where that is shorter.
 */
public final class FencedClient implements ClientInterceptor {
    private final String edge;

    /**
     * For one downstream.
     *
     * @param edge its name
     */
    public FencedClient(String edge) {
        this.edge = edge;
    }

    @Override
    public <Q, R> ClientCall<Q, R> interceptCall(MethodDescriptor<Q, R> method, CallOptions options, Channel next) {
        PathContext onward = Serving.calls(edge);
        return new SimpleForwardingClientCall<>(next.newCall(method, shortened(options, onward.timeout()))) {
            @Override
            public void start(Listener<R> listener, Metadata headers) {
                onward.writeHttp((name, value) -> {
                    Metadata.Key<String> key = FencedServer.key(name);
                    headers.discardAll(key);
                    headers.put(key, value);
                });
                super.start(listener, headers);
            }
        };
    }

    private static CallOptions shortened(CallOptions options, long left) {
        if (left == 0) return options;
        boolean shorter =
                options.getDeadline() == null || options.getDeadline().timeRemaining(TimeUnit.NANOSECONDS) > left;
        return shorter ? options.withDeadlineAfter(left, TimeUnit.NANOSECONDS) : options;
    }
}
