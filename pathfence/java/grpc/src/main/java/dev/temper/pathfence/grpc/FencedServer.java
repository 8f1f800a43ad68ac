// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.grpc;

import dev.temper.pathfence.Fence;
import dev.temper.pathfence.PathContext;
import dev.temper.pathfence.internal.Names;
import io.grpc.Context;
import io.grpc.Deadline;
import io.grpc.Metadata;
import io.grpc.ServerBuilder;
import io.grpc.ServerCall;
import io.grpc.ServerCallExecutorSupplier;
import io.grpc.ServerCallHandler;
import io.grpc.ServerInterceptor;
import io.grpc.Status;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Executor;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;

/**
 * The fence before a gRPC server's workers: a call waits without a thread, and what is refused is answered by a thread of
 * its own. gRPC's own executor takes in the requests of calls that have one; they are in memory while they wait.
 *
 * <pre>{@code
 * new FencedServer(fence, workers, "posts", false, Map.of()).install(builder);
 * }</pre>
 */
public final class FencedServer {
    private static final int LONGEST_NAME = 64;
    private static final Metadata.Key<String> SHED = key("x-pf-shed");
    private static final Metadata.Key<String> PUSHBACK = key("grpc-retry-pushback-ms");

    final Fence fence;
    final Executor workers;
    final Executor apart = Executors.newSingleThreadExecutor(task -> {
        Thread t = new Thread(task, "pathfence-apart");
        t.setDaemon(true);
        return t;
    });
    final String service;
    final boolean trusted;
    private final Map<String, String> keys;
    /** A probe that is refused has the service restarted. */
    private final Set<String> exempt = new HashSet<>(Set.of("grpc.health.v1.Health"));

    /**
     * Puts the fence before workers.
     *
     * @param fence decides; it must stay open as long as the server
     * @param workers at least as many threads as the fence has workers, and room to queue: a permit comes back a moment
     *     before its thread is free. A call that they reject is refused: {@code full}, or {@code closed} where they were
     *     shut down, which is to be done after the server has ended
     * @param service this service's name in visits; empty: re-entry is not seen
     * @param trusted whether peers may choose keys and depths
     * @param keys from a method's full name to its key; without an entry the name is the key, its last 64 characters
     */
    public FencedServer(Fence fence, Executor workers, String service, boolean trusted, Map<String, String> keys) {
        this.fence = fence;
        this.workers = workers;
        this.service = service;
        this.trusted = trusted;
        this.keys = Map.copyOf(keys);
        apart.execute(() -> {}); // its thread is there when no other can be made
    }

    /**
     * Leaves a service unfenced, as gRPC's health service is: its calls run on a thread of their own, whoever has the
     * workers. They must not block it. To be called before {@link #install}.
     *
     * @param name the service's full name
     * @return this
     */
    public FencedServer exempt(String name) {
        exempt.add(name);
        return this;
    }

    static Metadata.Key<String> key(String name) {
        return Metadata.Key.of(name, Metadata.ASCII_STRING_MARSHALLER);
    }

    /**
     * Sets a server's call executor, and adds an interceptor. Install it after other interceptors: they run on the workers,
     * and what is refused does not reach them. One that is added later sees nothing that a handler throws, and must neither
     * throw nor block: it may run on gRPC's own executor ({@link ServerBuilder#executor}), which must not be the workers.
     *
     * @param builder the server's
     */
    public void install(ServerBuilder<?> builder) {
        builder.callExecutor(new ServerCallExecutorSupplier() {
            @Override
            public <Q, R> Executor getExecutor(ServerCall<Q, R> call, Metadata headers) {
                if (isExempt(call)) return apart;
                return isStream(call) ? fenced(call, headers) : null; // null: gRPC's own
            }
        });
        builder.intercept(new ServerInterceptor() {
            @Override
            public <Q, R> ServerCall.Listener<Q> interceptCall(
                    ServerCall<Q, R> call, Metadata headers, ServerCallHandler<Q, R> next) {
                return intercept(call, headers, next);
            }
        });
    }

    private boolean isExempt(ServerCall<?, ?> call) {
        return exempt.contains(call.getMethodDescriptor().getServiceName());
    }

    private static String header(Metadata headers, String name) {
        Iterable<String> all = headers.getAll(key(name));
        if (all == null) return null;
        return name.equals("baggage") ? String.join(",", all) : all.iterator().next(); // the first of several counts
    }

    /** What grpc-timeout leaves; 0: it says nothing. */
    private static long left() {
        Deadline d = Context.current().getDeadline();
        return d == null ? 0 : Math.max(1, d.timeRemaining(TimeUnit.NANOSECONDS));
    }

    private String keyOf(String method) {
        String key = keys.getOrDefault(method, method);
        if (key.length() > LONGEST_NAME) key = key.substring(key.length() - LONGEST_NAME);
        return Names.valid(key) ? key : "";
    }

    private <Q, R> ServerCall.Listener<Q> intercept(
            ServerCall<Q, R> call, Metadata headers, ServerCallHandler<Q, R> next) {
        if (isExempt(call)) return next.startCall(call, headers);
        FencedCall c = isStream(call) ? FencedCall.here() : fenced(call, headers);
        if (c == null) return next.startCall(call, headers); // another's executor: not fenced
        if (!c.isOver()) return new Intake<>(c, call, headers, next);
        if (c.refusal() != null) call.close(refused(c.refusal()), trailers(c.refusal()));
        return new ServerCall.Listener<>() {};
    }

    private FencedCall fenced(ServerCall<?, ?> call, Metadata headers) {
        PathContext said = PathContext.readHttp(name -> header(headers, name));
        PathContext context = (trusted ? said : said.untrusted()).atMost(left());
        if (context.path().isEmpty()) context = context.withPath(keyOf(call.getMethodDescriptor().getFullMethodName()));
        return new FencedCall(this, context, isStream(call));
    }

    /** Whether its client may send more than one message. */
    private static boolean isStream(ServerCall<?, ?> call) {
        return !call.getMethodDescriptor().getType().clientSendsOneMessage();
    }

    /** What a call ends with for a reason of the fence, its own or a downstream's. */
    static Status refused(String reason) {
        return Status.RESOURCE_EXHAUSTED.withDescription("pf-shed: " + reason);
    }

    /** What goes with it. */
    static Metadata trailers(String reason) {
        Metadata trailers = new Metadata();
        trailers.put(SHED, reason);
        trailers.put(PUSHBACK, "-1");
        return trailers;
    }

    /** Why a downstream has refused, if that is what was thrown; or null. */
    static String shedBelow(Throwable thrown) {
        Metadata trailers = Status.trailersFromThrowable(thrown);
        return trailers == null ? null : trailers.get(SHED);
    }
}
