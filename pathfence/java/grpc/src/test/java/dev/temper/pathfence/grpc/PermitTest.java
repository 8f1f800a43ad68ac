// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.grpc;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assertions.fail;

import dev.temper.pathfence.ClassConfig;
import dev.temper.pathfence.ClassState;
import dev.temper.pathfence.Config;
import dev.temper.pathfence.Fence;
import io.grpc.CallOptions;
import io.grpc.ClientCall;
import io.grpc.Context;
import io.grpc.ForwardingServerCallListener.SimpleForwardingServerCallListener;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.MethodDescriptor.MethodType;
import io.grpc.Server;
import io.grpc.ServerCall;
import io.grpc.ServerCallHandler;
import io.grpc.ServerInterceptor;
import io.grpc.ServerInterceptors;
import io.grpc.ServerServiceDefinition;
import io.grpc.Status;
import io.grpc.netty.shaded.io.grpc.netty.NettyChannelBuilder;
import io.grpc.netty.shaded.io.grpc.netty.NettyServerBuilder;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** From when to when a call has a permit, by what its client, its handler and other interceptors do. */
@Timeout(120)
class PermitTest {
    private static final int WORKERS = 4;
    private static final int MANY = 5 * WORKERS;
    private static final long PATIENCE = 30; // seconds
    private static final int LARGE = 3_000_000; // more than gRPC's windows, so that who does not read it stops it

    private final Fence fence = Fence.of(Config.builder(WORKERS)
            .target(60_000_000_000L)
            .add(ClassConfig.of("slow", "posts/unary", "posts/list", "posts/chat"))
            .add(ClassConfig.of("fast", "posts/fast"))
            .build());
    private ExecutorService workers = Executors.newFixedThreadPool(WORKERS);
    private final CountDownLatch open = new CountDownLatch(1);
    private final BlockingQueue<String> arrived = new LinkedBlockingQueue<>(); // calls, whether they have a worker or not
    private final BlockingQueue<String> seen = new LinkedBlockingQueue<>(); // by handlers
    private final BlockingQueue<ServerCall<String, String>> pending = new LinkedBlockingQueue<>();
    private final AtomicInteger begun = new AtomicInteger(); // handlers
    private volatile Runnable outside = () -> {}; // what an interceptor outside of the fence does when a call has begun
    private volatile boolean overlapped; // two callbacks of a call
    private volatile boolean readyFirst; // a handler, before it had a message
    private volatile boolean swallows; // the ends of calls, out there
    private Server server;
    private ManagedChannel channel;

    private static MethodDescriptor<String, String> method(String name, MethodType type) {
        return GrpcTest.method(name).toBuilder().setType(type).setRequestMarshaller(new Sense()).build();
    }

    /** Not everything is understood. */
    private static final class Sense implements MethodDescriptor.Marshaller<String> {
        @Override
        public InputStream stream(String value) {
            return GrpcTest.Text.UTF8.stream(value);
        }

        @Override
        public String parse(InputStream stream) {
            String value = GrpcTest.Text.UTF8.parse(stream);
            if (value.equals("garbage")) throw new IllegalArgumentException(value);
            return value;
        }
    }

    private static final MethodDescriptor<String, String> FAST = GrpcTest.method("fast");
    private static final MethodDescriptor<String, String> UNARY = method("unary", MethodType.UNARY);
    private static final MethodDescriptor<String, String> LIST = method("list", MethodType.SERVER_STREAMING);
    private static final MethodDescriptor<String, String> CHAT = method("chat", MethodType.BIDI_STREAMING);

    /** Does what messages say, and writes down what it hears. */
    private final class Handler extends ServerCall.Listener<String> {
        private final ServerCall<String, String> call;
        private final AtomicBoolean busy = new AtomicBoolean();
        private String last = "";

        Handler(ServerCall<String, String> call) {
            this.call = call;
            begun.incrementAndGet();
            call.sendHeaders(new Metadata());
        }

        private void hears(String what) {
            seen.add(what);
            if (last.equals("throw in " + what)) throw PermitTest.<RuntimeException>sneaky(new Exception("checked"));
            if (last.equals("fail in " + what)) throw new StackOverflowError();
        }

        /** Callbacks come one at a time. */
        private void alone(Runnable callback) {
            if (!busy.compareAndSet(false, true)) overlapped = true;
            try {
                callback.run();
            } finally {
                busy.set(false);
            }
        }

        @Override
        public void onMessage(String message) {
            alone(() -> {
                last = message;
                hears(message.contains(" in ") ? "message" : message);
                if (message.equals("wait")) PermitTest.this.await();
                if (message.equals("say")) call.sendMessage("said");
            });
        }

        @Override
        public void onHalfClose() {
            alone(() -> {
                hears("half");
                if (last.equals("later")) pending.add(call);
                else answer();
            });
        }

        private void answer() {
            call.sendMessage(last.equals("large") ? "x".repeat(LARGE) : "done");
            call.close(Status.OK, new Metadata());
            if (last.equals("linger")) PermitTest.this.await();
        }

        @Override
        public void onReady() {
            alone(() -> readyFirst = last.isEmpty());
        }

        @Override
        public void onComplete() {
            alone(() -> hears(Context.current().isCancelled() ? "complete in a cancelled context" : "complete"));
        }

        @Override
        public void onCancel() {
            alone(() -> hears("cancel"));
        }
    }

    @SuppressWarnings("unchecked")
    private static <E extends Throwable> E sneaky(Throwable e) throws E {
        throw (E) e;
    }

    private void await() {
        try {
            open.await();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    private void start() throws Exception {
        ServerServiceDefinition.Builder service = ServerServiceDefinition.builder("posts");
        for (MethodDescriptor<String, String> m : List.of(FAST, UNARY, LIST, CHAT))
            service.addMethod(m, (call, headers) -> {
                if (headers.containsKey(FencedServer.key("throw")))
                    throw PermitTest.<RuntimeException>sneaky(new Exception("checked"));
                if (headers.containsKey(FencedServer.key("asks-later"))) pending.add(call);
                else call.request(10_000);
                return new Handler(call);
            });
        NettyServerBuilder b =
                NettyServerBuilder.forAddress(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
        b.addService(service.build());
        b.addService(ServerInterceptors.useInputStreamMessages(ServerServiceDefinition.builder("bytes")
                .addMethod(UNARY.toBuilder().setFullMethodName("bytes/unary").build(), (call, headers) -> {
                    call.request(1);
                    return new Handler(call);
                })
                .build()));
        new FencedServer(fence, workers, "posts", false, Map.of()).install(b);
        b.intercept(new Outside());
        server = b.build().start();
        channel = NettyChannelBuilder.forAddress("127.0.0.1", server.getPort())
                .usePlaintext()
                .flowControlWindow(65_535)
                .build();
    }

    private final class Outside implements ServerInterceptor {
        @Override
        public <Q, R> ServerCall.Listener<Q> interceptCall(
                ServerCall<Q, R> call, Metadata headers, ServerCallHandler<Q, R> next) {
            ServerCall.Listener<Q> listener = next.startCall(call, headers);
            arrived.add(call.getMethodDescriptor().getFullMethodName());
            outside.run();
            return new SimpleForwardingServerCallListener<>(listener) {
                @Override
                public void onComplete() {
                    if (!swallows) super.onComplete();
                }

                @Override
                public void onCancel() {
                    if (!swallows) super.onCancel();
                }
            };
        }
    }

    @AfterEach
    void stop() throws Exception {
        open.countDown();
        channel.shutdownNow().awaitTermination(PATIENCE, TimeUnit.SECONDS);
        server.shutdownNow().awaitTermination(PATIENCE, TimeUnit.SECONDS);
        assertFalse(overlapped, "callbacks come one at a time");
        until("at the end nothing is in flight", () -> fence.inFlight() + fence.waiting() == 0);
        workers.shutdown();
        fence.close();
    }

    private void until(String want, BooleanSupplier holds) {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(PATIENCE);
        while (!holds.getAsBoolean()) {
            if (System.nanoTime() - end > 0)
                fail(want + "; in flight " + fence.inFlight() + ", waiting " + fence.waiting() + ", " + fence.states());
            Thread.onSpinWait();
        }
    }

    private static String take(BlockingQueue<String> from, String want) throws InterruptedException {
        String got = from.poll(PATIENCE, TimeUnit.SECONDS);
        assertNotNull(got, want);
        return got;
    }

    private void sees(String... all) throws InterruptedException {
        for (String one : all) assertEquals(one, take(seen, "the handler hears: " + one));
    }

    private long granted() {
        return fence.states().stream().mapToLong(ClassState::granted).sum();
    }

    /** A client's side of a call, step by step. */
    private final class Client extends ClientCall.Listener<String> {
        private final ClientCall<String, String> call;
        private final BlockingQueue<String> heard = new LinkedBlockingQueue<>();
        private volatile Metadata trailers;

        /** Sends headers at once, whatever the method: gRPC's own client keeps those of a unary call until its request. */
        Client(MethodDescriptor<String, String> method, String... headers) {
            call = channel.newCall(method.toBuilder().setType(MethodType.BIDI_STREAMING).build(), CallOptions.DEFAULT);
            Metadata m = new Metadata();
            for (String h : headers) m.put(FencedServer.key(h), h);
            call.start(this, m);
        }

        Client reads() {
            call.request(1000);
            return this;
        }

        Client sends(String message) {
            call.sendMessage(message);
            return this;
        }

        Client ends() {
            call.halfClose();
            return this;
        }

        void hears(String want) throws InterruptedException {
            assertEquals(want, take(heard, "the client hears: " + want));
        }

        void isRefused(String... reasons) throws InterruptedException {
            hears("RESOURCE_EXHAUSTED");
            assertTrue(List.of(reasons).contains(trailers.get(FencedServer.key("x-pf-shed"))), trailers.toString());
            assertEquals("-1", trailers.get(FencedServer.key("grpc-retry-pushback-ms")));
        }

        @Override
        public void onMessage(String message) {
            heard.add(message.length() == LARGE ? "large" : message);
        }

        @Override
        public void onClose(Status status, Metadata with) {
            trailers = with;
            heard.add(status.getCode().name());
        }
    }

    private void fastIsServed() throws InterruptedException {
        Client c = new Client(FAST).reads().sends("quick").ends();
        c.hears("done");
        c.hears("OK");
    }

    private List<Client> clients(int count, MethodDescriptor<String, String> method) throws InterruptedException {
        List<Client> all = new ArrayList<>();
        for (int i = 0; i < count; i++) all.add(new Client(method).reads());
        for (int i = 0; i < count; i++) assertEquals(method.getFullMethodName(), take(arrived, (i + 1) + " calls arrive"));
        return all;
    }

    /** What they do next hangs; what others do does not. */
    private void hangs(List<Client> all) throws InterruptedException {
        until("all wait or are in flight", () -> fence.inFlight() + fence.waiting() == all.size());
        assertTrue(fence.inFlight() < WORKERS, fence.inFlight() + " in flight");
        fastIsServed();
        open.countDown();
    }

    // What streams ask for.

    @Test
    void streamsWaitForAWorkerAsOtherCallsDo() throws Exception {
        start();
        List<Client> chats = clients(MANY, CHAT);
        until("all have started and rest", () -> begun.get() == MANY && fence.inFlight() + fence.waiting() == 0);
        for (Client c : chats) c.sends("wait");
        hangs(chats);
        for (Client c : chats) {
            c.ends().hears("done");
            c.hears("OK");
        }
    }

    @Test
    void aServerStreamWaitsForAWorkerWhenItsRequestIsWhole() throws Exception {
        start();
        List<Client> lists = clients(MANY, LIST);
        assertEquals(0, granted(), "headers take no worker");
        for (Client c : lists) c.sends("wait").ends();
        hangs(lists);
        for (Client c : lists) {
            c.hears("done");
            c.hears("OK");
        }
        until("all come back", () -> fence.inFlight() == 0);
        assertEquals(MANY + 1, granted(), "one for each call");
    }

    /** It is as a unary call until its handler has its request. */
    @Test
    void aHandlerThatAsksLaterKeepsItsWorker() throws Exception {
        start();
        for (MethodDescriptor<String, String> m : List.of(UNARY, LIST)) {
            Client c = new Client(m, "asks-later").reads().sends("quick").ends();
            ServerCall<String, String> call = pending.take();
            until("its thread is done", () -> ((ThreadPoolExecutor) workers).getActiveCount() == 0);
            assertEquals(1, fence.inFlight(), m.getFullMethodName());
            call.request(1);
            c.hears("done");
            sees("quick", "half", "complete");
            until("it comes back", () -> fence.inFlight() == 0);
        }
        assertEquals(2, granted(), "one for each call");
    }

    /** A worker that takes each task at once would otherwise have it after the request, as a task of its own. */
    @Test
    void aHandlerIsReadyBeforeItsRequest() throws Exception {
        workers.shutdown();
        workers = new ThreadPoolExecutor(WORKERS, WORKERS, 0, TimeUnit.SECONDS, new LinkedBlockingQueue<>()) {
            @Override
            public void execute(Runnable task) {
                task.run();
            }
        };
        start();
        for (MethodDescriptor<String, String> m : List.of(UNARY, LIST)) {
            readyFirst = false;
            Client c = new Client(m).reads().sends("later").ends();
            ServerCall<String, String> call = pending.take();
            assertTrue(readyFirst, m.getFullMethodName());
            call.sendMessage("one");
            call.close(Status.OK, new Metadata());
            c.hears("one");
            c.hears("OK");
        }
    }

    /** When its handler has its request, what it goes on with is a stream's. */
    @Test
    void aServerStreamThatIsAnsweredLaterRests() throws Exception {
        start();
        Client c = new Client(LIST).reads().sends("later").ends();
        ServerCall<String, String> call = pending.take();
        until("it rests", () -> fence.inFlight() == 0);
        call.sendMessage("one");
        call.close(Status.OK, new Metadata());
        c.hears("one");
        c.hears("OK");
        sees("later", "half", "complete");
    }

    @Test
    void whatAStreamIsRefusedEndsIt() throws Exception {
        start();
        Client chat = new Client(CHAT).reads().sends("say");
        chat.hears("said");
        until("it rests", () -> fence.inFlight() == 0);
        fence.reload(Config.builder(1)
                .add(new ClassConfig("slow", List.of("posts/unary", "posts/chat"), 0, 50_000_000L, 0, 0))
                .build());
        Client holds = new Client(UNARY).reads().sends("wait").ends();
        until("there is no worker left", () -> fence.inFlight() == 1);
        sees("say", "wait");
        chat.sends("never heard");
        chat.isRefused("expired", "late");
        open.countDown();
        holds.hears("done");
        List<String> ends = List.of(take(seen, "half"), take(seen, "an end"), take(seen, "an end"));
        assertEquals(List.of("cancel", "complete", "half"), ends.stream().sorted().toList(), "the handler is told");
    }

    @Test
    void messagesThatWaitStayInOrder() throws Exception {
        start();
        fence.reload(Config.builder(1).target(60_000_000_000L).build());
        Client chat = new Client(CHAT).reads().sends("say");
        chat.hears("said");
        until("it rests", () -> fence.inFlight() == 0);
        new Client(UNARY).reads().sends("wait").ends();
        until("there is no worker left", () -> fence.inFlight() == 1);
        sees("say", "wait");
        for (int i = 0; i < 50; i++) chat.sends("m" + i);
        chat.ends();
        until("it waits", () -> fence.waiting() == 1);
        open.countDown();
        sees("half"); // of what had the worker
        chat.hears("done");
        List<String> all = new ArrayList<>();
        while (!all.contains("half")) {
            String one = take(seen, "all messages, after " + all);
            if (!one.equals("complete")) all.add(one); // the other's, too
        }
        List<String> want = new ArrayList<>();
        for (int i = 0; i < 50; i++) want.add("m" + i);
        want.add("half");
        assertEquals(want, all);
    }

    /** The next message comes while the permit goes back. */
    @Test
    void nothingIsLostBetweenARestAndTheNextMessage() throws Exception {
        start();
        List<Client> chats = clients(2 * WORKERS, CHAT);
        for (int i = 0; i < 500; i++) {
            for (Client c : chats) c.sends("say");
            for (Client c : chats) c.hears("said");
        }
        for (Client c : chats) c.ends().hears("done");
    }

    // How long a call of one request has its worker.

    @Test
    void headersHoldNoWorker() throws Exception {
        start();
        List<Client> calls = clients(MANY, UNARY);
        assertEquals(0, granted(), "headers take no worker");
        for (Client c : calls) c.sends("half of it");
        fastIsServed();
        assertEquals(1, granted(), "nor does a request that is not whole");
        for (Client c : calls) c.ends().hears("done");
    }

    @Test
    void theTimeThatACallWaitsForItsRequestIsNoSample() throws Exception {
        start();
        Client c = clients(1, UNARY).get(0);
        Thread.sleep(500); // how long it waits, at least
        c.sends("quick").ends().hears("done");
        until("it comes back", () -> granted() == 1 && fence.inFlight() == 0);
        long hold = fence.state("slow").orElseThrow().hold();
        assertTrue(hold > 0 && hold < 500_000_000, "it has taken " + hold + " ns");
    }

    @Test
    void anAnswerThatIsNotReadHoldsNoWorker() throws Exception {
        start();
        List<Client> calls = new ArrayList<>();
        for (int i = 0; i < 2 * WORKERS; i++) calls.add(new Client(UNARY).sends("large").ends());
        until("all are served and come back", () -> granted() == 2 * WORKERS && fence.inFlight() == 0);
        for (Client c : calls) c.reads().hears("large");
    }

    @Test
    void aWorkerThatGoesOnAfterTheAnswerIsHeld() throws Exception {
        start();
        Client c = new Client(UNARY).reads().sends("linger").ends();
        c.hears("done");
        c.hears("OK");
        assertEquals(1, fence.inFlight());
        open.countDown();
        until("it comes back with its thread", () -> fence.inFlight() == 0);
    }

    @Test
    void aWorkerWhoseClientLeavesIsHeldAsLongAsItWorks() throws Exception {
        start();
        CountDownLatch cancelled = new CountDownLatch(1);
        outside = () -> Context.current().addListener(c -> cancelled.countDown(), Runnable::run);
        Client c = new Client(UNARY).reads().sends("wait").ends();
        sees("wait");
        c.call.cancel("the client leaves", null);
        cancelled.await();
        assertEquals(1, fence.inFlight());
        open.countDown();
        sees("cancel");
        until("it comes back with its thread", () -> fence.inFlight() == 0);
    }

    @Test
    void aWorkerThatHasNotBegunComesBackWhenTheClientLeaves() throws Exception {
        workers.shutdown();
        workers = Executors.newFixedThreadPool(1);
        start();
        workers.execute(this::await);
        for (MethodDescriptor<String, String> m : List.of(UNARY, CHAT)) {
            Client c = new Client(m).reads().sends("not heard").ends();
            until("it is granted", () -> fence.inFlight() == 1);
            c.call.cancel("the client leaves", null);
            until("it comes back", () -> fence.inFlight() == 0);
        }
        open.countDown();
        fastIsServed();
        sees("quick");
    }

    @Test
    void tooManyRequestsAreAnErrorWithoutAWorker() throws Exception {
        start();
        Client c = new Client(UNARY).reads().sends("one").sends("two").ends();
        String end = take(c.heard, "the call ends");
        assertTrue(List.of("INTERNAL", "CANCELLED").contains(end), end); // gRPC's server resets what is under way
        assertEquals(0, granted());
    }

    /** gRPC closes it as soon as it has been brought, which is before a worker reads it. */
    @Test
    void aMessageThatIsAStreamIsKept() throws Exception {
        start();
        Client c = new Client(GrpcTest.method("unary").toBuilder().setFullMethodName("bytes/unary").build());
        c.reads().sends("some bytes").ends().hears("done");
        sees("some bytes", "half", "complete");
    }

    // Whatever happens, it comes back.

    /** More often than there are workers, each time. */
    @Test
    void whateverACallbackThrowsThePermitComesBack() throws Exception {
        start();
        for (MethodDescriptor<String, String> m : List.of(UNARY, LIST, CHAT))
            for (String how : List.of("throw in ", "fail in "))
                for (String where : List.of("message", "half", "complete", "cancel"))
                    for (int i = 0; i <= WORKERS; i++) throwsOnce(m, how, where);
        for (MethodDescriptor<String, String> m : List.of(UNARY, LIST, CHAT))
            for (int i = 0; i <= WORKERS; i++)
                new Client(m, "throw").reads().sends("not heard").ends().hears("UNKNOWN");
        until("all come back", () -> fence.inFlight() + fence.waiting() == 0);
        fastIsServed();
    }

    private void throwsOnce(MethodDescriptor<String, String> m, String how, String where) throws InterruptedException {
        seen.clear();
        Client c = new Client(m).reads().sends(how + where);
        if (!where.equals("cancel")) {
            c.ends().hears(where.equals("complete") ? "done" : "UNKNOWN");
            return;
        }
        if (m == CHAT) while (!take(seen, "a message").equals("message")) Thread.onSpinWait();
        c.call.cancel("the client leaves", null); // others than a chat have not started
        if (m == CHAT) while (!take(seen, "the cancellation").equals("cancel")) Thread.onSpinWait();
    }

    /** gRPC ends such a call by itself. */
    @Test
    void whatIsNotUnderstoodKeepsNoPermit() throws Exception {
        start();
        for (int i = 0; i < 2 * WORKERS; i++) {
            new Client(UNARY).reads().sends("garbage").ends().hears("UNKNOWN");
            Client chat = new Client(CHAT).reads().sends("say");
            chat.hears("said");
            chat.sends("garbage").hears("UNKNOWN");
        }
        until("all come back", () -> fence.inFlight() + fence.waiting() == 0);
        fastIsServed();
    }

    /** That no thread can be made is an Error, and none that says which call it was. */
    @Test
    void workersThatFailRefuse() throws Exception {
        AtomicBoolean fails = new AtomicBoolean(true);
        workers.shutdown();
        workers = new ThreadPoolExecutor(WORKERS, WORKERS, 0, TimeUnit.SECONDS, new LinkedBlockingQueue<>(), task -> {
            if (fails.get()) throw new OutOfMemoryError("unable to create a native thread");
            return new Thread(task);
        });
        start();
        for (int i = 0; i < 2 * WORKERS; i++) {
            new Client(UNARY).reads().sends("not heard").ends().isRefused("full");
            new Client(CHAT).reads().sends("not heard").isRefused("full");
        }
        until("all come back", () -> fence.inFlight() + fence.waiting() == 0);
        assertNull(seen.poll(), "no handler hears of it");
        fails.set(false);
        fastIsServed();
    }

    @Test
    void aStreamIsRefusedWhenItsWorkersAreShutDown() throws Exception {
        start();
        Client chat = new Client(CHAT).reads().sends("say");
        chat.hears("said");
        until("it rests", () -> fence.inFlight() == 0);
        sees("say");
        workers.shutdown();
        chat.sends("never heard").isRefused("closed");
        sees("cancel");
    }

    @Test
    void whoeverKeepsAnEndToHimselfKeepsNoPermit() throws Exception {
        swallows = true;
        start();
        for (int i = 0; i < 2 * WORKERS; i++) {
            Client c = new Client(UNARY).reads().sends("later").ends();
            assertNotNull(pending.poll(PATIENCE, TimeUnit.SECONDS), "call " + (i + 1) + " is served");
            c.call.cancel("the client leaves", null);
        }
        until("all come back", () -> fence.inFlight() + fence.waiting() == 0);
    }

    @Test
    void whoeverThrowsOutsideOfTheFenceKeepsNoPermit() throws Exception {
        outside = () -> {
            throw new IllegalStateException("an interceptor that fails");
        };
        start();
        for (int i = 0; i < 2 * WORKERS; i++) {
            new Client(UNARY).reads().sends("not heard").ends().hears("UNKNOWN");
            new Client(CHAT).reads().sends("not heard").ends().hears("UNKNOWN");
        }
        until("all come back", () -> fence.inFlight() + fence.waiting() == 0);
    }
}
