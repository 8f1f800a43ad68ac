// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.spring;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.temper.pathfence.ClassState;
import io.micrometer.core.instrument.FunctionCounter;
import io.micrometer.core.instrument.Meter;
import io.micrometer.core.instrument.MeterRegistry;
import java.io.IOException;
import java.net.Socket;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.web.context.request.async.DeferredResult;

/** The starter in a real Tomcat and a real Jetty, over real HTTP. What is awaited is a state or a latch, never a time. */
@Timeout(180)
class ServerTest extends InServer {
    static final Map<String, Integer> STATUS = Map.of(
            "/throws", 500, "/async", 200, "/asyncThrows", 500, "/asyncTimesOut", 503, "/none", 404, "/missing/7", 404);

    private String switchOff(boolean off) throws Exception {
        return post("/actuator/pathfence", "{\"off\":" + off + "}", "content-type", "application/json").get().body();
    }

    private static String[] twoClasses() {
        return new String[] {
            "pathfence.classes[0].name=slow", "pathfence.classes[0].keys[0]=GET:/slow",
            "pathfence.classes[1].name=fast", "pathfence.classes[1].keys[0]=GET:/fast",
        };
    }

    /** Far more requests of the slow path than the server has threads: what waits holds none of them. */
    @ParameterizedTest
    @ValueSource(strings = {"tomcat", "jetty"})
    void aSlowPathDoesNotTakeTheWorkersOfTheFastOne(String server) throws Exception {
        start(server, twoClasses());
        shop.slow.shut();
        List<CompletableFuture<HttpResponse<String>>> slow = new ArrayList<>();
        for (int i = 0; i < 40; i++) slow.add(get("/slow"));
        until(() -> fence.inFlight() + fence.waiting() == 40, fence);
        assertTrue(fence.inFlight() < 4, fence.inFlight() + " in flight");
        assertTrue(shop.threads() < 8, "a worker for each that waits");
        for (int i = 0; i < 20; i++) assertEquals("fast", get("/fast").get().body());
        assertEquals(20, state("fast").granted());
        shop.slow.open();
        for (var s : slow) assertEquals("slow", s.get().body());
        awaitInFlight(0);
        assertEquals(40, state("slow").granted());
        assertEquals(0, fence.waiting());
    }

    @ParameterizedTest
    @ValueSource(strings = {"tomcat", "jetty"})
    void whatIsRefusedIsAnsweredAtOnce(String server) throws Exception {
        start(server, "pathfence.workers=1", "pathfence.trusted=true", "pathfence.service=shop");
        shop.slow.shut();
        var held = get("/slow");
        awaitInFlight(1);
        HttpResponse<String> late = get("/slow", "x-pf-deadline", "30").get();
        assertEquals(503, late.statusCode());
        assertEquals("expired", late.headers().firstValue("x-pf-shed").orElseThrow());
        String retry = late.headers().firstValue("retry-after").orElseThrow();
        assertTrue(Set.of("1", "2").contains(retry), retry); // the class has nothing that would take longer
        HttpResponse<String> circle = get("/fast", "x-pf-visits", "shop*9").get();
        assertEquals(503, circle.statusCode());
        assertEquals("depth", circle.headers().firstValue("x-pf-shed").orElseThrow());
        shop.slow.open();
        assertEquals(200, held.get().statusCode());
        awaitInFlight(0);
    }

    @ParameterizedTest
    @ValueSource(strings = {"tomcat", "jetty"})
    void offIsAsWithoutTheFence(String server) throws Exception {
        start(server, twoClasses());
        shop.slow.shut();
        List<CompletableFuture<HttpResponse<String>>> slow = new ArrayList<>();
        for (int i = 0; i < 6; i++) slow.add(get("/slow"));
        until(() -> fence.inFlight() + fence.waiting() == 6, fence);
        assertTrue(fence.inFlight() < 4);
        assertTrue(switchOff(true).contains("\"off\":true"));
        until(() -> shop.threads() == 6, fence); // off, the server's threads are the bound, and not the four workers
        assertTrue(switchOff(false).contains("\"off\":false"));
        shop.slow.open();
        for (var s : slow) assertEquals("slow", s.get().body());
        String seen = get("/actuator/pathfence").get().body();
        assertTrue(seen.contains("\"name\":\"slow\"") && seen.contains("\"reason\""), seen);
        awaitInFlight(0);
    }

    @ParameterizedTest
    @ValueSource(strings = {"tomcat", "jetty"})
    void nothingLeaksWhateverHandlersDo(String server) throws Exception {
        start(server);
        for (String path : STATUS.keySet()) {
            int status = get(path).orTimeout(30, TimeUnit.SECONDS).handle((r, e) -> e == null ? r.statusCode() : 0).get();
            assertEquals(STATUS.get(path), status, path);
            awaitInFlight(0);
        }
        // Tomcat answers before it comes to filters, after the fence. Jetty 12.0 says 500, without any fence, too.
        int hidden = get("/WEB-INF/web.xml").get().statusCode();
        if (server.equals("tomcat")) assertEquals(404, hidden);
        awaitInFlight(0);
        // What goes on asynchronously holds no worker, and takes one again for its answer.
        var pending = get("/pending");
        DeferredResult<String> result = shop.pending.get();
        awaitInFlight(0);
        result.setResult("late");
        assertEquals("late", pending.get().body());
        awaitInFlight(0);
        assertEquals(0, fence.waiting());
        assertTrue(fence.states().stream().mapToLong(ClassState::failed).sum() >= 3, "failures count as such");
    }

    /** Spring drops the slashes of a map's key that does not stand in brackets. */
    @Test
    void aRouteThatLostItsSlashesIsAnError() {
        Throwable e = assertThrows(RuntimeException.class, () -> start("tomcat", "pathfence.routes./items/**=items"));
        while (e.getCause() != null) e = e.getCause();
        assertTrue(e.getMessage().contains("[/items/**]"), e.getMessage());
    }

    @Test
    void aServerInWhichNothingCanWaitSaysSo() throws Exception {
        start("tomcat", "pathfence.workers=1", "test.synchronous=true");
        shop.slow.shut();
        var held = get("/slow");
        awaitInFlight(1);
        assertEquals(500, get("/fast").get().statusCode());
        assertEquals(0, fence.waiting());
        shop.slow.open();
        assertEquals("slow", held.get().body());
        awaitInFlight(0);
    }

    @ParameterizedTest
    @ValueSource(strings = {"tomcat", "jetty"})
    void clientsThatLeaveLeakNothing(String server) throws Exception {
        start(server, "pathfence.workers=1");
        shop.slow.shut();
        var held = get("/slow");
        awaitInFlight(1);
        for (int i = 0; i < 5; i++) {
            Socket client = asking("/large", "accept: */*");
            awaitWaiting(i + 1);
            client.close();
        }
        shop.slow.open();
        held.get();
        until(() -> fence.inFlight() + fence.waiting() == 0, fence);
        assertEquals("fast", get("/fast").get().body());
    }

    @ParameterizedTest
    @ValueSource(strings = {"tomcat", "jetty"})
    void refusalsOfClientsThatLeftLeakNothing(String server) throws Exception {
        start(server, "pathfence.workers=1");
        shop.slow.shut();
        var held = get("/slow");
        awaitInFlight(1);
        for (int i = 0; i < 5; i++) asking("/fast", "x-pf-deadline: 100").close();
        until(() -> fence.states().stream().mapToLong(ClassState::shed).sum() == 5, fence);
        shop.slow.open();
        held.get();
        awaitInFlight(0);
        assertEquals(0, fence.waiting());
        assertEquals("fast", get("/fast").get().body());
    }

    /**
     * Every chain holds a worker while it waits for another: none kept for those that come back, all would wait for each
     * other until their deadlines.
     */
    @ParameterizedTest
    @ValueSource(strings = {"tomcat", "jetty"})
    void chainsThroughAFullPoolEnd(String server) throws Exception {
        start(server, "pathfence.trusted=true", "pathfence.service=shop", "pathfence.peers[0]=127.0.0.1", "pathfence.classes[0].name=chains",
                "pathfence.classes[0].keys[0]=GET:/gated", "pathfence.classes[0].keys[1]=GET:/again");
        assertEquals("again", get("/again").get().body()); // now workers are kept for such chains
        shop.slow.shut();
        List<CompletableFuture<HttpResponse<String>>> chains = new ArrayList<>();
        for (int i = 0; i < 12; i++) chains.add(get("/gated"));
        until(() -> fence.inFlight() + fence.waiting() == 12, fence);
        shop.slow.open();
        for (var c : chains) assertEquals("again", c.get().body());
        awaitInFlight(0);
        assertEquals(13 * (Shop.ROUNDS + 1), state("chains").granted());
    }

    /** The client side: key, time and visits go on, an edge is learned, and a downstream's refusal becomes one's own. */
    @ParameterizedTest
    @ValueSource(strings = {"tomcat", "jetty"})
    void clientsCarryOnAndLearnEdges(String server) throws Exception {
        start(server, "pathfence.trusted=true", "pathfence.service=shop", "pathfence.workers=8", "pathfence.peers[0]=127.0.0.1");
        for (int i = 0; i < 8; i++) {
            String echoed = get("/calls", "x-pf-path", "home.read", "x-pf-deadline", "50000").get().body();
            assertTrue(echoed.matches("home.read [0-9]{5} shop\\*1"), echoed);
        }
        awaitInFlight(0);
        get("/calls", "x-pf-path", "home.read").get();
        assertTrue(fence.states().stream().anyMatch(s -> s.name().startsWith("~calls:")), "no class was learned: " + fence.states());
        HttpResponse<String> shed = get("/callsShed").get();
        assertEquals(503, shed.statusCode());
        assertEquals("late", shed.headers().firstValue("x-pf-shed").orElseThrow());
        assertEquals("late", get("/reactive").get().body());
        awaitInFlight(0);
    }

    /** Whoever is called would believe it, since it trusts this service. */
    @Test
    void aStrangersDeadlineIsNotSentOn() throws Exception {
        start("tomcat", "pathfence.service=shop", "pathfence.peers[0]=127.0.0.1");
        assertEquals("GET:/calls null shop*1", get("/calls", "x-pf-deadline", "50000").get().body());
    }

    /** A host that is no peer is told nothing of the service's routes and names, and cannot say that it refuses. */
    @Test
    void whoIsNoPeerIsSentNothingAndNotBelieved() throws Exception {
        start("tomcat", "pathfence.trusted=true", "pathfence.service=shop", "pathfence.peers[0]=*.shop.svc");
        assertEquals("null null null", get("/calls", "x-pf-path", "home.read", "x-pf-deadline", "50000").get().body());
        HttpResponse<String> failed = get("/callsShed").get();
        assertEquals(500, failed.statusCode());
        assertTrue(failed.headers().firstValue("x-pf-shed").isEmpty());
        awaitInFlight(0);
    }

    @ParameterizedTest
    @ValueSource(strings = {"tomcat", "jetty"})
    void peersThatAreNotTrustedChooseNoKey(String server) throws Exception {
        start(server, "pathfence.routes[/f*]=table", "pathfence.classes[0].name=own", "pathfence.classes[0].keys[0]=table",
                "pathfence.service=shop");
        assertEquals(200, get("/fast", "x-pf-path", "forged", "x-pf-visits", "shop*9").get().statusCode());
        awaitInFlight(0);
        assertEquals(1, state("own").granted());
        MeterRegistry meters = context.getBean(MeterRegistry.class);
        assertEquals(1.0, meters.get("pathfence.granted").tag("class", "own").functionCounter().count());
        assertEquals(4.0, meters.get("pathfence.limit").tag("class", "own").gauge().value());
        assertEquals(4.0, meters.get("pathfence.workers").gauge().value());
        assertEquals(0.0, meters.get("pathfence.off").gauge().value());
        context.getBean(FenceEndpoint.class).off(true);
        assertEquals(1.0, meters.get("pathfence.off").gauge().value());
        assertEquals(agreedMetrics(), metrics(meters));
    }

    /** The names in the example that all languages are held to. */
    private static Set<String> agreedMetrics() throws IOException {
        try (Stream<String> lines = Files.lines(Path.of("../../spec/state/state.prom"))) {
            return lines.filter(l -> l.startsWith("# TYPE ")).map(l -> l.split(" ")[2]).collect(Collectors.toSet());
        }
    }

    /** What the meters of the state are called in Prometheus. The timer of waits is Spring's alone. */
    private static Set<String> metrics(MeterRegistry meters) {
        return meters.getMeters().stream()
                .filter(m -> m.getId().getName().startsWith("pathfence.") && m.getId().getType() != Meter.Type.TIMER)
                .map(m -> m.getId().getName().replace('.', '_') + (m instanceof FunctionCounter ? "_total" : ""))
                .collect(Collectors.toSet());
    }
}
