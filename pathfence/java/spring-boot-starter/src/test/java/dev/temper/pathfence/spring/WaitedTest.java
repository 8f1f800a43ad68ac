// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.spring;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.net.Socket;
import java.net.http.HttpClient.Version;
import java.net.http.HttpResponse;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.apache.tomcat.util.threads.ThreadPoolExecutor;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** What has waited is a request like any other: to filters, listeners, handlers and clients. */
@Timeout(180)
class WaitedTest extends InServer {
    /** The application's filters see a request that waits as they see any other: once, with all that comes of it. */
    @ParameterizedTest
    @ValueSource(strings = {"tomcat", "tomcat, HTTP/2", "jetty"})
    void whatHasWaitedIsARequestLikeAnyOther(String server) throws Exception {
        start(server, "pathfence.workers=1");
        Supplier<List<CompletableFuture<HttpResponse<String>>>> ask = () -> List.of(
                post("/guarded", "a", "x-name", "eve"), post("/guarded", "b"), post("/guarded", "c", "x-name", "bob"));
        List<HttpResponse<String>> waited = waited(3, ask);
        assertEquals(server.endsWith("HTTP/2") ? Version.HTTP_2 : Version.HTTP_1_1, waited.get(0).version());
        assertEquals("eve sent a in a REQUEST, seen 1", waited.get(0).body());
        assertEquals(401, waited.get(1).statusCode(), "the filter that authenticates was passed by");
        assertEquals("bob sent c in a REQUEST, seen 1", waited.get(2).body());
    }

    @ParameterizedTest
    @ValueSource(strings = {"tomcat", "tomcat, HTTP/2", "jetty"})
    void whatHasWaitedEndsAsItWouldHave(String server) throws Exception {
        List<String> paths = List.copyOf(ServerTest.STATUS.keySet());
        start(server, "pathfence.workers=1");
        List<HttpResponse<String>> waited = waited(paths.size(), () -> paths.stream().map(this::get).toList());
        int wentTwice = wentTwice();
        start(server, "pathfence.workers=1");
        for (int i = 0; i < paths.size(); i++) {
            HttpResponse<String> atOnce = get(paths.get(i)).get();
            awaitInFlight(0);
            assertEquals(ServerTest.STATUS.get(paths.get(i)), waited.get(i).statusCode(), paths.get(i));
            assertEquals(withoutTime(atOnce.body()), withoutTime(waited.get(i).body()), paths.get(i));
        }
        assertEquals(wentTwice(), wentTwice, "listeners hear the same");
    }

    /** How many more requests went than came, as listeners hear it once nothing is under way. Tomcat itself tells some twice. */
    private int wentTwice() {
        assertEquals(0, fence.inFlight() + fence.waiting());
        Other.Listening listening = context.getBean(Other.Listening.class);
        context.close();
        return listening.went.get() - listening.came.get();
    }

    private static String withoutTime(String body) {
        return body.replaceAll("\"timestamp\":\"[^\"]*\"", "");
    }

    /** Bodies are read after filters have said what is in them, though a handler is chosen by what a form says. */
    @ParameterizedTest
    @ValueSource(strings = {"tomcat", "jetty"})
    void formsAreReadAsTheyAreMeant(String server) throws Exception {
        start(server, "pathfence.workers=1");
        String[] form = {"content-type", "application/x-www-form-urlencoded"};
        assertEquals("some \u00e4", post("/form", "mode=some&name=%C3%A4", form).get().body());
        assertEquals("any \u00e4", post("/form", "name=%C3%A4", form).get().body());
        assertEquals(400, post("/form", "mode=%zz", form).get().statusCode());
        awaitInFlight(0);
    }

    @Test
    void filesAreSent() throws Exception {
        start("tomcat", "pathfence.workers=1");
        assertEquals(Other.FILE, get("/file").get().body().length());
        assertEquals(Other.FILE, waited(1, () -> List.of(get("/file"))).get(0).body().length());
    }

    @Test
    void whatIsRewrittenIsServed() throws Exception {
        start("tomcat", "pathfence.workers=1", "test.rewrite=true");
        assertEquals("fast", get("/old").get().body());
        assertEquals("fast", waited(1, () -> List.of(get("/old"))).get(0).body());
    }

    /** The servers would end what has been asynchronous, or idle, for so long. */
    @ParameterizedTest
    @CsvSource({"tomcat, test.async-timeout=500", "jetty, server.jetty.connection-idle-timeout=500ms"})
    void howLongItWaitsIsTheFencesToSay(String server, String timeout) throws Exception {
        start(server, "pathfence.workers=1", timeout);
        shop.slow.shut();
        try (Socket held = asking("/slow", "connection: close")) {
            awaitInFlight(1);
            var waits = get("/fast");
            awaitWaiting(1);
            Thread.sleep(1500); // three times the timeout: that nothing happens is no event
            shop.slow.open();
            assertEquals("fast", waits.get().body());
            awaitInFlight(0);
        }
    }

    /** Tomcat drops what its threads and their queue do not take. */
    @Test
    void whatTheServersThreadsDoNotTakeComesBack() throws Exception {
        start("tomcat", "pathfence.workers=1", "pathfence.exempt[0]=/stuck", "server.tomcat.threads.max=2",
                "server.tomcat.threads.min-spare=2", "server.tomcat.threads.max-queue-capacity=1", "test.async-timeout=500");
        shop.slow.shut();
        var held = get("/slow");
        awaitInFlight(1);
        var waits = get("/fast");
        awaitWaiting(1);
        shop.stuck.shut();
        var stuck = List.of(get("/stuck"), get("/stuck")); // a thread, and the queue
        until(() -> !queue().isEmpty(), fence);
        shop.slow.open();
        awaitWaiting(0);
        held.get();
        shop.stuck.open();
        for (var s : stuck) assertEquals("stuck", s.get().body());
        assertEquals("fast", waits.get(60, TimeUnit.SECONDS).body());
        awaitInFlight(0);
    }

    /** What waits for Tomcat's threads. */
    private BlockingQueue<Runnable> queue() {
        var executor = Servers.tomcat(context).getConnector().getProtocolHandler().getExecutor();
        return ((ThreadPoolExecutor) executor).getQueue();
    }

    @ParameterizedTest
    @ValueSource(strings = {"tomcat", "jetty"})
    void keysMayComeFromWhatNeedsTheServer(String server) throws Exception {
        start(server, "test.keys=true", "pathfence.classes[0].name=own", "pathfence.classes[0].keys[0]=own");
        assertEquals("fast", get("/fast").get().body());
        awaitInFlight(0);
        assertEquals(1, state("own").granted());
    }
}
