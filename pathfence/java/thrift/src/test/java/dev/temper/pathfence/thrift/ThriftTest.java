// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.thrift;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.temper.pathfence.ClassConfig;
import dev.temper.pathfence.Config;
import dev.temper.pathfence.Fence;
import dev.temper.pathfence.PathContext;
import dev.temper.pathfence.Permit;
import dev.temper.pathfence.Serving;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.FutureTask;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.apache.thrift.TApplicationException;
import org.apache.thrift.protocol.TBinaryProtocol;
import org.apache.thrift.protocol.TCompactProtocol;
import org.apache.thrift.protocol.TMultiplexedProtocol;
import org.apache.thrift.protocol.TProtocol;
import org.apache.thrift.TMultiplexedProcessor;
import org.apache.thrift.TProcessor;
import org.apache.thrift.protocol.TProtocolFactory;
import org.apache.thrift.server.THsHaServer;
import org.apache.thrift.server.TServer;
import org.apache.thrift.server.TThreadedSelectorServer;
import org.apache.thrift.transport.TNonblockingServerSocket;
import org.apache.thrift.transport.TSocket;
import org.apache.thrift.transport.layered.TFramedTransport;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Real servers over loopback; what is awaited is a state, never a time. */
@Timeout(120)
class ThriftTest {
    private static final int WORKERS = 4;

    private final Fence fence = Fence.of(Config.builder(WORKERS)
            .target(60_000_000_000L)
            .add(ClassConfig.of("slow", "slow"))
            .add(ClassConfig.of("fast", "fast", "read"))
            .build());
    private final Posts posts = new Posts();
    private ExecutorService pool = Executors.newFixedThreadPool(WORKERS);
    private TServer server;
    private Thread serving;
    private int port;
    private TProtocolFactory protocol;

    private void start(String kind, String encoding, Listener listener, TProcessor processor) throws Exception {
        protocol = encoding.equals("binary") ? new TBinaryProtocol.Factory() : new TCompactProtocol.Factory();
        TNonblockingServerSocket socket =
                new TNonblockingServerSocket(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
        port = socket.getPort();
        FencedServerTransport transport = new FencedServerTransport(socket, listener);
        FencedExecutor workers = new FencedExecutor(fence, pool);
        TProcessor fenced = new FencedProcessor(processor, listener);
        server = kind.equals("hsha")
                ? new THsHaServer(new THsHaServer.Args(transport)
                        .executorService(workers)
                        .processor(fenced)
                        .protocolFactory(protocol))
                : new TThreadedSelectorServer(new TThreadedSelectorServer.Args(transport)
                        .executorService(workers)
                        .processor(fenced)
                        .protocolFactory(protocol));
        serving = new Thread(server::serve);
        serving.start();
    }

    @AfterEach
    void stop() throws Exception {
        posts.open.countDown();
        server.stop();
        serving.join();
        fence.close();
        assertEquals(0, fence.inFlight());
    }

    private TProtocol connect() throws Exception {
        TSocket s = new TSocket("127.0.0.1", port);
        s.open();
        return protocol.getProtocol(new TFramedTransport(s));
    }

    private FutureTask<String> call(String method, Map<String, String> carrier) {
        FutureTask<String> t = new FutureTask<>(() -> {
            TProtocol p = connect();
            try {
                return Posts.call(p, method, carrier);
            } finally {
                p.getTransport().close();
            }
        });
        new Thread(t).start();
        return t;
    }

    private void awaitAll(long count) {
        while (fence.inFlight() + fence.waiting() != count) Thread.onSpinWait();
    }

    @ParameterizedTest
    @CsvSource({"hsha,binary", "hsha,compact", "selector,binary", "selector,compact"})
    void aSlowPathDoesNotTakeTheWorkersOfTheFastOne(String kind, String encoding) throws Exception {
        start(kind, encoding, Listener.of("posts", true), posts);
        List<FutureTask<String>> slow = new ArrayList<>();
        for (int i = 0; i < 12; i++) slow.add(call("slow", Map.of()));
        awaitAll(12);
        assertTrue(fence.inFlight() < WORKERS, fence.inFlight() + " in flight");
        TProtocol p = connect();
        for (int i = 0; i < 20; i++) assertEquals("fast", Posts.call(p, "fast", Map.of("some", "thing")));
        p.getTransport().close();
        posts.open.countDown();
        for (FutureTask<String> s : slow) assertEquals("slow", s.get());
        awaitAll(0);
        assertEquals(12, fence.state("slow").orElseThrow().granted());
        assertEquals(20, fence.state("fast").orElseThrow().granted());
    }

    @ParameterizedTest
    @CsvSource({"hsha", "selector"})
    void refusalsFailuresAndGarbageLeakNothing(String kind) throws Exception {
        start(kind, "binary", Listener.of("posts", true), posts);
        fence.reload(Config.builder(1).target(60_000_000_000L).build());
        FutureTask<String> held = call("slow", Map.of());
        awaitAll(1);
        for (String name : List.of("pf!read!30!!fast", "pf!read!!posts*9!fast")) {
            ExecutionException e = assertThrows(ExecutionException.class, call(name, Map.of())::get);
            TApplicationException shed = (TApplicationException) e.getCause();
            assertEquals(TApplicationException.INTERNAL_ERROR, shed.getType());
            assertEquals(name.contains("30") ? "pf-shed: expired" : "pf-shed: depth", shed.getMessage());
        }
        // Who leaves while the request waits is served into the void.
        TProtocol gone = connect();
        gone.writeMessageBegin(new org.apache.thrift.protocol.TMessage("fast", (byte) 1, 1));
        gone.writeStructBegin(new org.apache.thrift.protocol.TStruct("none"));
        gone.writeFieldStop();
        gone.writeMessageEnd();
        gone.getTransport().flush();
        awaitAll(2);
        gone.getTransport().close();
        posts.open.countDown();
        assertEquals("slow", held.get());
        awaitAll(0);
        assertThrows(ExecutionException.class, call("fails", Map.of())::get);
        TSocket garbage = new TSocket("127.0.0.1", port);
        garbage.open();
        garbage.write(new byte[] {0, 0, 0, 3, 1, 2, 3});
        garbage.flush();
        assertEquals("fast", call("fast", Map.of()).get());
        awaitAll(0);
        garbage.close();
        assertEquals(1, fence.states().stream().mapToLong(s -> s.failed()).sum());
    }

    @ParameterizedTest
    @CsvSource({"hsha", "selector"})
    void whatBusyWorkersRejectIsRefused(String kind) throws Exception {
        pool = new ThreadPoolExecutor(1, 1, 0, TimeUnit.SECONDS, new SynchronousQueue<>());
        start(kind, "binary", Listener.of("posts", true), posts);
        pool.submit(() -> {
            posts.open.await();
            return null;
        });
        TProtocol p = connect();
        for (int i = 0; i < 2 * WORKERS; i++) {
            TApplicationException e = assertThrows(TApplicationException.class, () -> Posts.call(p, "fast", Map.of()));
            assertEquals("pf-shed: full", e.getMessage());
        }
        p.getTransport().close();
        awaitAll(0);
        assertEquals(0, fence.states().stream().mapToLong(s -> s.failed()).sum());
    }

    /**
     * Every chain holds a worker while it waits for another: none kept for those that come back, all would wait for each
     * other until their deadlines.
     */
    @ParameterizedTest
    @CsvSource({"hsha", "selector"})
    void chainsThroughAFullPoolEnd(String kind) throws Exception {
        start(kind, "binary", Listener.of("posts", true), posts);
        posts.again = () -> {
            TProtocol p = new FencedProtocol(connect(), "posts");
            try {
                return Posts.call(p, "again", Map.of());
            } finally {
                p.getTransport().close();
            }
        };
        assertEquals("again", call("pf!read!!!again", Map.of()).get()); // now workers are kept for such chains
        List<FutureTask<String>> chains = new ArrayList<>();
        for (int i = 0; i < 12; i++) chains.add(call("pf!read!!!gated", Map.of()));
        awaitAll(12);
        posts.open.countDown();
        for (FutureTask<String> c : chains) assertEquals("gated", c.get());
        awaitAll(0);
        assertEquals(13 * (Posts.ROUNDS + 1), fence.state("fast").orElseThrow().granted());
    }

    @ParameterizedTest
    @CsvSource({"hsha", "selector"})
    void aClientSendsOnAndItsEdgesAreLearned(String kind) throws Exception {
        TMultiplexedProcessor several = new TMultiplexedProcessor();
        several.registerProcessor("posts", posts);
        start(kind, "binary", new Listener("posts", true, true, Map.of()), several);
        try (Fence before = Fence.of(Config.builder(4).build())) {
            for (int i = 0; i < 8; i++) {
                Permit p = before.acquire(dev.temper.pathfence.Call.of("home"));
                PathContext came = new PathContext("read", 50_000_000_000L, "front*1");
                try (Serving.Scope s = new Serving(p, came, "home", System.nanoTime()).enter()) {
                    TProtocol c = new TMultiplexedProtocol(new FencedProtocol(connect(), "posts"), "posts");
                    assertEquals("front*1;home*1;posts*1", Posts.call(c, "onward", Map.of()));
                    c.getTransport().close();
                }
                p.release(dev.temper.pathfence.Outcome.OK);
            }
            assertEquals("~calls:posts", before.acquire(dev.temper.pathfence.Call.of("home")).className());
        }
        awaitAll(0);
        assertEquals(8, fence.state("fast").orElseThrow().granted(), "the key went on");
        assertEquals("fast", call("posts:fast", Map.of("pf.path", "read")).get());
        awaitAll(0);
        assertEquals(9, fence.state("fast").orElseThrow().granted(), "the carrier's key counts");
    }

    @ParameterizedTest
    @CsvSource({"hsha", "selector"})
    void peersThatAreNotTrustedChooseNoKey(String kind) throws Exception {
        start(kind, "binary", new Listener("posts", false, false, Map.of("fast", "read")), posts);
        assertEquals("fast", call("pf!slow!!posts*9!fast", Map.of()).get());
        awaitAll(0);
        assertEquals(1, fence.state("fast").orElseThrow().granted());
    }
}
