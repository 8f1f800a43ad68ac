// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.grpc;

import dev.temper.pathfence.Fence;
import dev.temper.pathfence.Outcome;
import dev.temper.pathfence.PathContext;
import dev.temper.pathfence.internal.Names;
import io.grpc.Context;
import io.grpc.Deadline;
import io.grpc.ForwardingServerCall.SimpleForwardingServerCall;
import io.grpc.ForwardingServerCallListener.SimpleForwardingServerCallListener;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
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
 * its own.
 *
 * <pre>{@code
 * new FencedServer(fence, workers, "posts", false, Map.of()).install(builder);
 * }</pre>
 */
public final class FencedServer {
    private static final int LONGEST_NAME = 64;
    private static final Metadata.Key<String> SHED = key("x-pf-shed");
    private static final Metadata.Key<String> PUSHBACK = key("grpc-retry-pushback-ms");

    private final Fence fence;
    private final Executor workers;
    private final Executor apart = Executors.newSingleThreadExecutor(task -> {
        Thread t = new Thread(task, "pathfence-apart");
        t.setDaemon(true);
        return t;
    });
    private final String service;
    private final boolean trusted;
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
     * Sets a server's call executor, and adds an interceptor. Install it after other interceptors, so that what is
     * refused does not reach them.
     *
     * @param builder the server's
     */
    public void install(ServerBuilder<?> builder) {
        builder.callExecutor(new ServerCallExecutorSupplier() {
            @Override
            public <Q, R> Executor getExecutor(ServerCall<Q, R> call, Metadata headers) {
                return admit(call, headers);
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

    private <Q, R> Executor admit(ServerCall<Q, R> call, Metadata headers) {
        if (exempt.contains(call.getMethodDescriptor().getServiceName())) return apart;
        PathContext said = PathContext.readHttp(name -> header(headers, name));
        PathContext context = (trusted ? said : said.untrusted()).atMost(left());
        if (context.path().isEmpty()) context = context.withPath(keyOf(call.getMethodDescriptor().getFullMethodName()));
        boolean streams = call.getMethodDescriptor().getType() != MethodDescriptor.MethodType.UNARY;
        FencedCall c = new FencedCall(workers, apart, context, service, streams);
        c.submit(fence, context.call(service, trusted), Context.current());
        return c;
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

    private static <Q, R> ServerCall.Listener<Q> intercept(
            ServerCall<Q, R> call, Metadata headers, ServerCallHandler<Q, R> next) {
        FencedCall c = FencedCall.here();
        if (c == null) return next.startCall(call, headers); // another transport's executor: not fenced
        if (c.refused() != null) {
            refuse(call, c.refused());
            return new ServerCall.Listener<>() {};
        }
        c.claim();
        ServerCall<Q, R> judged = new Judged<>(call, c);
        try {
            return new Ends<>(next.startCall(judged, headers), judged, c);
        } catch (RuntimeException | Error e) {
            c.release(Outcome.FAIL);
            throw e;
        }
    }

    private static void refuse(ServerCall<?, ?> call, String reason) {
        Metadata trailers = new Metadata();
        trailers.put(SHED, reason);
        trailers.put(PUSHBACK, "-1");
        call.close(Status.RESOURCE_EXHAUSTED.withDescription("pf-shed: " + reason), trailers);
    }

    /** Why a downstream has refused, if that is what was thrown; or null. */
    private static String shedBelow(Throwable thrown) {
        Metadata trailers = Status.trailersFromThrowable(thrown);
        return trailers == null ? null : trailers.get(SHED);
    }

    /** Notes how the call ended. */
    private static final class Judged<Q, R> extends SimpleForwardingServerCall<Q, R> {
        private final FencedCall of;

        Judged(ServerCall<Q, R> call, FencedCall of) {
            super(call);
            this.of = of;
        }

        @Override
        public void close(Status status, Metadata trailers) {
            of.ends(outcome(status.getCode()));
            super.close(status, trailers);
        }

        private static Outcome outcome(Status.Code code) {
            return switch (code) {
                case UNKNOWN, DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED, ABORTED, INTERNAL, UNAVAILABLE, DATA_LOSS ->
                    Outcome.FAIL;
                case CANCELLED -> Outcome.CANCEL;
                case OK -> Outcome.OK;
                default -> Outcome.LIGHT; // the caller's own fault, which was found out at once
            };
        }
    }

    /** Gives the permit back at the end: gRPC calls one of the two, once. */
    private static final class Ends<Q> extends SimpleForwardingServerCallListener<Q> {
        private final ServerCall<Q, ?> call;
        private final FencedCall of;

        Ends(ServerCall.Listener<Q> listener, ServerCall<Q, ?> call, FencedCall of) {
            super(listener);
            this.call = call;
            this.of = of;
        }

        @Override
        public void onMessage(Q message) {
            orFail(() -> super.onMessage(message));
        }

        @Override
        public void onHalfClose() {
            orFail(super::onHalfClose);
        }

        /** What a handler throws ends the call without close(); but a downstream's refusal becomes the call's own. */
        private void orFail(Runnable handler) {
            try {
                handler.run();
            } catch (RuntimeException | Error e) {
                of.release(Outcome.FAIL);
                String reason = shedBelow(e);
                if (reason == null) throw e;
                refuse(call, reason);
            }
        }

        @Override
        public void onComplete() {
            try {
                super.onComplete();
            } finally {
                of.release(of.outcome());
            }
        }

        @Override
        public void onCancel() {
            try {
                super.onCancel();
            } finally {
                of.release(Outcome.CANCEL);
            }
        }
    }
}
