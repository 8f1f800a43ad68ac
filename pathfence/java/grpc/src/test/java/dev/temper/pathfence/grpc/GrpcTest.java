// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.grpc;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.temper.pathfence.Call;
import dev.temper.pathfence.ClassConfig;
import dev.temper.pathfence.ClassState;
import dev.temper.pathfence.Config;
import dev.temper.pathfence.Fence;
import dev.temper.pathfence.Outcome;
import dev.temper.pathfence.PathContext;
import dev.temper.pathfence.Permit;
import dev.temper.pathfence.Serving;
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientInterceptors;
import io.grpc.Context;
import io.grpc.Deadline;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Server;
import io.grpc.ServerServiceDefinition;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.netty.shaded.io.grpc.netty.NettyChannelBuilder;
import io.grpc.netty.shaded.io.grpc.netty.NettyServerBuilder;
import io.grpc.stub.ClientCalls;
import io.grpc.stub.MetadataUtils;
import io.grpc.stub.ServerCalls;
import io.grpc.stub.StreamObserver;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** A real netty server over loopback; what is awaited is a state, never a time. */
@Timeout(120)
class GrpcTest {
    private static final int WORKERS = 4;
    private static final int ROUNDS = 2; // how often a chain comes back to this service

    /** A client that tries again where it is refused, unless the answer says not to. */
    private static final Map<String, ?> RETRIES = Map.of(
            "methodConfig",
            List.of(Map.of(
                    "name", List.of(Map.of("service", "posts")),
                    "retryPolicy",
                            Map.of(
                                    "maxAttempts", 5.0,
                                    "initialBackoff", "0.001s",
                                    "maxBackoff", "0.001s",
                                    "backoffMultiplier", 1.0,
                                    "retryableStatusCodes", List.of("RESOURCE_EXHAUSTED", "ABORTED")))));

    private final Fence fence = Fence.of(Config.builder(WORKERS)
            .target(60_000_000_000L)
            .add(ClassConfig.of("slow", "posts/slow", "posts/denied"))
            .add(ClassConfig.of("fast", "posts/fast", "read"))
            .build());
    private ExecutorService workers = Executors.newFixedThreadPool(WORKERS);
    private final CountDownLatch open = new CountDownLatch(1);
    private final BlockingQueue<StreamObserver<String>> pending = new LinkedBlockingQueue<>();
    private Server server;
    private ManagedChannel channel;

    enum Text implements MethodDescriptor.Marshaller<String> {
        UTF8;

        @Override
        public InputStream stream(String value) {
            return new ByteArrayInputStream(value.getBytes(StandardCharsets.UTF_8));
        }

        @Override
        public String parse(InputStream stream) {
            try {
                return new String(stream.readAllBytes(), StandardCharsets.UTF_8);
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }
    }

    static MethodDescriptor<String, String> method(String name) {
        return MethodDescriptor.<String, String>newBuilder()
                .setType(MethodDescriptor.MethodType.UNARY)
                .setFullMethodName("posts/" + name)
                .setRequestMarshaller(Text.UTF8)
                .setResponseMarshaller(Text.UTF8)
                .build();
    }

    /** What a probe calls. */
    private static final MethodDescriptor<String, String> HEALTH = method("any").toBuilder()
            .setFullMethodName("grpc.health.v1.Health/Check")
            .build();

    private static final MethodDescriptor<String, String> STREAM =
            method("stream").toBuilder().setType(MethodDescriptor.MethodType.BIDI_STREAMING).build();

    /** A handler that answers each message. */
    private StreamObserver<String> stream(StreamObserver<String> out) {
        return new StreamObserver<>() {
            @Override
            public void onNext(String in) {
                if (in.equals("wait")) GrpcTest.this.await();
                if (in.equals("later")) pending.add(out);
                else out.onNext(in);
            }

            @Override
            public void onError(Throwable e) {}

            @Override
            public void onCompleted() {
                out.onCompleted();
            }
        };
    }

    private void start(boolean trusted) throws Exception {
        ServerServiceDefinition.Builder service = ServerServiceDefinition.builder("posts");
        for (String name : List.of("slow", "fast", "fails", "onward", "gated", "again", "aborts", "passes", "denied", "pending"))
            service.addMethod(method(name), ServerCalls.asyncUnaryCall((in, out) -> serve(name, out)));
        service.addMethod(STREAM, ServerCalls.asyncBidiStreamingCall(this::stream));
        NettyServerBuilder b =
                NettyServerBuilder.forAddress(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
        b.addService(service.build());
        b.addService(ServerServiceDefinition.builder("grpc.health.v1.Health")
                .addMethod(HEALTH, ServerCalls.asyncUnaryCall((in, out) -> serve("serving", out)))
                .build());
        new FencedServer(fence, workers, "posts", trusted, Map.of()).install(b);
        server = b.build().start();
        channel = NettyChannelBuilder.forAddress("127.0.0.1", server.getPort())
                .usePlaintext()
                .defaultServiceConfig(RETRIES)
                .build();
    }

    private void serve(String name, StreamObserver<String> out) {
        String answer = name;
        if (name.equals("pending")) {
            pending.add(out);
            return;
        }
        if (name.equals("fails")) throw new IllegalStateException("a handler that fails");
        if (name.equals("aborts")) {
            out.onError(Status.ABORTED.asRuntimeException());
            return;
        }
        if (name.equals("denied")) {
            out.onError(Status.PERMISSION_DENIED.asRuntimeException());
            return;
        }
        if (name.equals("passes")) call(with("x-pf-visits", "posts*9"), "fast", CallOptions.DEFAULT);
        if (name.equals("slow") || name.equals("gated")) await();
        if (name.equals("gated") || name.equals("again") && depth() < ROUNDS)
            call(ClientInterceptors.intercept(channel, new FencedClient("posts")), "again", CallOptions.DEFAULT);
        if (name.equals("onward")) {
            PathContext onward = Serving.calls("store");
            answer = onward.path() + " " + onward.visits() + " " + (onward.timeout() > 0);
        }
        out.onNext(answer);
        out.onCompleted();
    }

    /** How often this chain of calls has been here before: what is sent on counts this visit. */
    private static long depth() {
        return Serving.here().orElseThrow().onward().depth("posts") - 1;
    }

    private void await() {
        try {
            open.await();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    @AfterEach
    void stop() throws Exception {
        open.countDown();
        channel.shutdownNow().awaitTermination(60, TimeUnit.SECONDS);
        server.shutdownNow().awaitTermination();
        while (fence.inFlight() + fence.waiting() != 0) Thread.onSpinWait();
        workers.shutdown();
        fence.close();
    }

    private static String call(Channel to, String name, CallOptions options) {
        return ClientCalls.blockingUnaryCall(to, method(name), options, "");
    }

    private Future<String> later(String name) {
        return ClientCalls.futureUnaryCall(channel.newCall(method(name), CallOptions.DEFAULT), "");
    }

    private Channel with(String... headers) {
        Metadata m = new Metadata();
        for (int i = 0; i < headers.length; i += 2) m.put(FencedServer.key(headers[i]), headers[i + 1]);
        return ClientInterceptors.intercept(channel, MetadataUtils.newAttachHeadersInterceptor(m));
    }

    private void awaitAll(long count) {
        while (fence.inFlight() + fence.waiting() != count) Thread.onSpinWait();
    }

    private long granted() {
        return fence.states().stream().mapToLong(ClassState::granted).sum();
    }

    private long failed() {
        return fence.states().stream().mapToLong(ClassState::failed).sum();
    }

    @Test
    void aSlowPathDoesNotTakeTheWorkersOfTheFastOne() throws Exception {
        start(true);
        List<Future<String>> slow = new ArrayList<>();
        for (int i = 0; i < 20; i++) slow.add(later("slow"));
        awaitAll(20);
        assertTrue(fence.inFlight() < WORKERS, fence.inFlight() + " in flight");
        for (int i = 0; i < 20; i++) assertEquals("fast", call(channel, "fast", CallOptions.DEFAULT));
        open.countDown();
        for (Future<String> s : slow) assertEquals("slow", s.get());
        awaitAll(0);
        assertEquals(20, fence.state("slow").orElseThrow().granted());
        assertEquals(20, fence.state("fast").orElseThrow().granted());
    }

    /** Every worker is taken, and its thread, too. */
    @Test
    void healthIsAnsweredWhateverElseIs() throws Exception {
        start(true);
        fence.off(true);
        List<Future<String>> slow = new ArrayList<>();
        for (int i = 0; i < WORKERS; i++) slow.add(later("slow"));
        while (fence.inFlight() != WORKERS) Thread.onSpinWait();
        assertEquals("serving", ClientCalls.blockingUnaryCall(channel, HEALTH, CallOptions.DEFAULT, ""));
        open.countDown();
        for (Future<String> s : slow) assertEquals("slow", s.get());
    }

    @Test
    void answersThatAreNoWorkTeachNothing() throws Exception {
        start(true);
        Future<String> slow = later("slow");
        while (fence.inFlight() != 1) Thread.onSpinWait();
        Thread.sleep(500); // how long it takes, at least
        open.countDown();
        assertEquals("slow", slow.get());
        awaitAll(0);
        long hold = fence.state("slow").orElseThrow().hold();
        for (int i = 0; i < 40; i++)
            assertThrows(StatusRuntimeException.class, () -> call(channel, "denied", CallOptions.DEFAULT));
        awaitAll(0);
        assertEquals(hold, fence.state("slow").orElseThrow().hold());
        assertEquals(0, failed());
    }

    @Test
    void aRefusalSaysThatARetryHelpsNobody() throws Exception {
        start(true);
        StatusRuntimeException e = assertThrows(
                StatusRuntimeException.class, () -> call(with("x-pf-visits", "posts*9"), "fast", CallOptions.DEFAULT));
        assertEquals(Status.Code.RESOURCE_EXHAUSTED, e.getStatus().getCode());
        assertEquals("depth", e.getTrailers().get(FencedServer.key("x-pf-shed")));
        assertEquals("-1", e.getTrailers().get(FencedServer.key("grpc-retry-pushback-ms")));
    }

    /** gRPC's own policy of retries, which tries five times where an answer does not say that it helps nobody. */
    @Test
    void aClientsRetryPolicyHeedsARefusal() throws Exception {
        start(true);
        assertThrows(StatusRuntimeException.class, () -> call(channel, "aborts", CallOptions.DEFAULT));
        assertEquals(5, granted(), "the policy is in force");
        assertThrows(
                StatusRuntimeException.class, () -> call(with("x-pf-visits", "posts*9"), "fast", CallOptions.DEFAULT));
        assertEquals(1, fence.state("fast").orElseThrow().shed());
    }

    /** Thrown on by a handler, it would be UNKNOWN, and tried again. */
    @Test
    void aDownstreamsRefusalBecomesOnesOwn() throws Exception {
        start(true);
        StatusRuntimeException e =
                assertThrows(StatusRuntimeException.class, () -> call(channel, "passes", CallOptions.DEFAULT));
        assertRefused("depth", e);
        assertEquals("-1", e.getTrailers().get(FencedServer.key("grpc-retry-pushback-ms")));
        awaitAll(0);
        assertEquals(1, granted());
        assertEquals(1, failed());
    }

    /**
     * Every chain holds a worker while it waits for another: none kept for those that come back, all would wait for each
     * other until their deadlines.
     */
    @Test
    void chainsThroughAFullPoolEnd() throws Exception {
        start(true);
        Channel read = with("x-pf-path", "read");
        assertEquals("again", call(read, "again", CallOptions.DEFAULT)); // now workers are kept for such chains
        List<Future<String>> chains = new ArrayList<>();
        for (int i = 0; i < 12; i++)
            chains.add(ClientCalls.futureUnaryCall(read.newCall(method("gated"), CallOptions.DEFAULT), ""));
        awaitAll(12);
        open.countDown();
        for (Future<String> c : chains) assertEquals("gated", c.get());
        awaitAll(0);
        assertEquals(13 * (ROUNDS + 1), fence.state("fast").orElseThrow().granted());
    }

    @Test
    void clientsThatLeaveAndHandlersThatFailLeakNothing() throws Exception {
        start(true);
        fence.reload(Config.builder(1).target(60_000_000_000L).build());
        Future<String> held = later("slow");
        awaitAll(1);
        Future<String> gone = later("fast");
        awaitAll(2);
        gone.cancel(true);
        awaitAll(1); // it is withdrawn while it waits
        // grpc-timeout is the request's deadline here, too.
        StatusRuntimeException e = assertThrows(
                StatusRuntimeException.class,
                () -> call(channel, "fast", CallOptions.DEFAULT.withDeadlineAfter(50, TimeUnit.MILLISECONDS)));
        assertTrue(List.of(Status.Code.DEADLINE_EXCEEDED, Status.Code.RESOURCE_EXHAUSTED)
                .contains(e.getStatus().getCode()));
        awaitAll(1);
        open.countDown();
        assertEquals("slow", held.get());
        assertThrows(ExecutionException.class, later("fails")::get);
        awaitAll(0);
        assertEquals(1, failed());
        assertEquals("fast", call(channel, "fast", CallOptions.DEFAULT));
    }

    @Test
    void aClientSendsOnAndItsEdgesAreLearned() throws Exception {
        start(true);
        Channel fenced = ClientInterceptors.intercept(channel, new FencedClient("posts"));
        try (Fence before = Fence.of(Config.builder(4).build())) {
            for (int i = 0; i < 8; i++) {
                Permit p = before.acquire(Call.of("home"));
                PathContext came = new PathContext("read", 50_000_000_000L, "front*1");
                try (Serving.Scope s = new Serving(p, came, "home", System.nanoTime()).enter()) {
                    assertEquals("read front*1;home*1;posts*1 true", call(fenced, "onward", CallOptions.DEFAULT));
                }
                p.release(Outcome.OK);
            }
            Permit p = before.acquire(Call.of("home"));
            assertEquals("~calls:posts", p.className());
            p.release(Outcome.OK);
        }
        awaitAll(0);
        assertEquals(8, fence.state("fast").orElseThrow().granted(), "the key went on");
        assertEquals("posts/onward posts*1 false", call(fenced, "onward", CallOptions.DEFAULT));
    }

    /** The caller's own deadline counts where it is shorter, and the request's where that is. */
    @Test
    void deadlinesTravelAsGrpcsOwn() throws Exception {
        start(true);
        Channel fenced = ClientInterceptors.intercept(channel, new FencedClient("posts"));
        Deadline far = Deadline.after(500, TimeUnit.SECONDS);
        String answer = Context.current().call(() -> call(fenced, "onward", CallOptions.DEFAULT.withDeadline(far)));
        assertEquals("posts/onward posts*1 true", answer);
    }

    @Test
    void peersThatAreNotTrustedChooseNoKey() throws Exception {
        start(false);
        assertEquals("fast", call(with("x-pf-path", "posts/slow", "x-pf-visits", "posts*9"), "fast", CallOptions.DEFAULT));
        awaitAll(0);
        assertEquals(1, fence.state("fast").orElseThrow().granted());
        assertEquals(
                "posts/onward posts*1 false",
                call(with("x-pf-deadline", "500000"), "onward", CallOptions.DEFAULT),
                "whoever is called would believe it");
    }

    @Test
    void whatBusyWorkersRejectIsRefused() throws Exception {
        workers.shutdown();
        workers = new ThreadPoolExecutor(1, 1, 0, TimeUnit.SECONDS, new SynchronousQueue<>());
        start(true);
        workers.execute(this::await);
        for (int i = 0; i < 2 * WORKERS; i++) assertRefused("full", later("fast"));
        workers.shutdown();
        assertRefused("closed", later("fast"));
        awaitAll(0);
        assertEquals(0, failed());
    }

    private static void assertRefused(String reason, Future<String> call) {
        ExecutionException e = assertThrows(ExecutionException.class, () -> call.get(60, TimeUnit.SECONDS));
        assertRefused(reason, (StatusRuntimeException) e.getCause());
    }

    private static void assertRefused(String reason, StatusRuntimeException e) {
        assertEquals(Status.RESOURCE_EXHAUSTED.getCode(), e.getStatus().getCode(), e.toString());
        assertEquals(reason, e.getTrailers().get(FencedServer.key("x-pf-shed")));
    }

    /** What becomes of the call is gRPC's to say. */
    @Test
    void aCallUnderWayGivesItsPermitBackWhenItsWorkersAreShutDown() throws Exception {
        start(true);
        Future<String> asked = later("pending");
        StreamObserver<String> answer = pending.take();
        workers.shutdown();
        assertTrue(workers.awaitTermination(60, TimeUnit.SECONDS));
        assertEquals(1, fence.inFlight());
        answer.onNext("late");
        answer.onCompleted();
        assertEquals("late", asked.get());
        awaitAll(0);
        assertEquals(0, failed());
    }

    /** Twice as many as there are workers, of which each has had one for a moment. */
    @Test
    void streamsThatWaitHoldNoWorker() throws Exception {
        start(true);
        List<Talk> talks = new ArrayList<>();
        for (int i = 0; i < 2 * WORKERS; i++) {
            talks.add(new Talk());
            talks.get(i).say("first");
            awaitAll(0);
        }
        assertEquals("fast", call(channel, "fast", CallOptions.DEFAULT));
        for (Talk t : talks) t.say("second");
        for (Talk t : talks) t.end();
        awaitAll(0);
        assertEquals(0, failed());
        assertEquals(0, fence.states().stream().mapToLong(ClassState::shed).sum());
    }

    /** Between messages it waits, and while its thread works for one it counts. */
    @Test
    void aStreamThatWorksHoldsAWorker() throws Exception {
        start(true);
        Talk talk = new Talk();
        talk.say("first");
        awaitAll(0);
        talk.requests.onNext("wait");
        while (fence.inFlight() != 1) Thread.onSpinWait();
        open.countDown();
        assertEquals("wait", talk.heard.take());
        awaitAll(0);
        talk.end();
    }

    /** Its end is no work: it takes no worker again, and teaches nothing. */
    @Test
    void aStreamThatEndsElsewhereTakesNoWorker() throws Exception {
        start(true);
        Talk talk = new Talk();
        talk.requests.onNext("later");
        StreamObserver<String> out = pending.take();
        awaitAll(0);
        long before = granted();
        out.onCompleted();
        assertEquals("the end", talk.heard.take());
        assertTrue(server.shutdown().awaitTermination(60, TimeUnit.SECONDS));
        workers.shutdown();
        assertTrue(workers.awaitTermination(60, TimeUnit.SECONDS));
        assertEquals(before, granted());
    }

    /** A client's side of a stream. */
    private final class Talk implements StreamObserver<String> {
        private final BlockingQueue<String> heard = new LinkedBlockingQueue<>();
        private final StreamObserver<String> requests =
                ClientCalls.asyncBidiStreamingCall(channel.newCall(STREAM, CallOptions.DEFAULT), this);

        void say(String text) throws InterruptedException {
            requests.onNext(text);
            assertEquals(text, heard.take());
        }

        void end() throws InterruptedException {
            requests.onCompleted();
            assertEquals("the end", heard.take());
        }

        @Override
        public void onNext(String answer) {
            heard.add(answer);
        }

        @Override
        public void onError(Throwable e) {
            heard.add(e.toString());
        }

        @Override
        public void onCompleted() {
            heard.add("the end");
        }
    }
}
