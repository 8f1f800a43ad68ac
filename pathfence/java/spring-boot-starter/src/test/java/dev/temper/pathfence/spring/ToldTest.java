// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.spring;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.micrometer.core.instrument.LongTaskTimer;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Timer;
import java.io.IOException;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Waiting and being refused is seen where people look: in the server's own metrics, and by clients. */
@Timeout(60)
class ToldTest extends InServer {
    private static final String ORIGIN = "http://shop.example";

    private MeterRegistry meters() {
        return context.getBean(MeterRegistry.class);
    }

    private Timer requests(String uri, String status) {
        return meters().get("http.server.requests").tags("uri", uri, "status", status).timer();
    }

    private long active() {
        return meters().find("http.server.requests.active").longTaskTimers().stream()
                .mapToLong(LongTaskTimer::activeTasks)
                .sum();
    }

    /**
     * Lets a request of one page wait, and others be refused meanwhile.
     *
     * @return how long it waited at least, in milliseconds
     */
    private long waitBeside(int refused) throws Exception {
        shop.slow.shut();
        var held = get("/slow");
        awaitInFlight(1);
        var asked = get("/pages/7");
        awaitWaiting(1);
        until(() -> active() == 2, fence); // what it is told to begins after it is in the queue
        long since = System.nanoTime();
        for (int i = 0; i < refused; i++) assertEquals(503, get("/pages/8", "x-pf-deadline", "1").get().statusCode());
        until(() -> System.nanoTime() - since >= 50_000_000, fence);
        long waited = System.nanoTime() - since;
        shop.slow.open();
        assertEquals("slow", held.get().body());
        assertEquals("page 7", asked.get().body());
        awaitInFlight(0);
        return TimeUnit.NANOSECONDS.toMillis(waited);
    }

    @ParameterizedTest
    @ValueSource(strings = {"tomcat", "jetty"})
    void theServersTimerHasWaitsAndRefusals(String server) throws Exception {
        start(server, "pathfence.workers=1", "pathfence.trusted=true", "test.convention=true");
        long waited = waitBeside(2);
        Timer served = requests("/pages/{id}", "200");
        assertEquals(1, served.count(), "a request that waited is one request");
        assertTrue(served.max(TimeUnit.MILLISECONDS) >= waited, served.max(TimeUnit.MILLISECONDS) + " ms, waited " + waited);
        assertEquals(2, requests("/pages/{id}", "503").count(), "refused");
        assertEquals(0, active(), "requests that the server believes to be under way");
        // Micrometer would count the events of spans, too, with the tags of requests that are not over.
        assertEquals(List.of(), meters().getMeters().stream().map(m -> m.getId().getName()).filter(n -> n.startsWith("http.server.requests.pathfence")).toList());
    }

    @ParameterizedTest
    @ValueSource(strings = {"tomcat", "jetty"})
    void eachClassHasATimerOfItsWaits(String server) throws Exception {
        start(server, "pathfence.workers=1", "pathfence.trusted=true");
        long waited = waitBeside(1);
        List<Timer> granted = List.copyOf(meters().get("pathfence.wait").tags("outcome", "granted").timers());
        assertEquals(2, granted.stream().mapToLong(Timer::count).sum(), "/slow and /pages/7");
        double longest = granted.stream().mapToDouble(t -> t.max(TimeUnit.MILLISECONDS)).max().orElse(0);
        assertTrue(longest >= waited, longest + " ms, waited " + waited);
        Timer refused = meters().get("pathfence.wait").tags("outcome", "expired").timer();
        assertEquals(1, refused.count());
        assertTrue(refused.getId().getTag("class").startsWith("~"), refused.getId().toString());
    }

    @Test
    void tomcatsAccessLogHasWaitsAndRefusals(@TempDir Path folder) throws Exception {
        start(
                "tomcat",
                "pathfence.workers=1",
                "pathfence.trusted=true",
                "server.tomcat.basedir=" + folder,
                "server.tomcat.accesslog.enabled=true",
                "server.tomcat.accesslog.buffered=false",
                "server.tomcat.accesslog.pattern=%U %s %{x-pf-shed}o %D");
        long waited = waitBeside(1);
        context.close();
        Map<String, Long> log = new HashMap<>(); // a line's start, and the microseconds that are its end
        for (String line : Files.readAllLines(only(folder.resolve("logs")))) {
            int end = line.lastIndexOf(' ');
            log.put(line.substring(0, end), Long.parseLong(line.substring(end + 1)));
        }
        assertEquals(Set.of("/slow 200 -", "/pages/7 200 -", "/pages/8 503 expired"), log.keySet());
        assertTrue(log.get("/pages/7 200 -") >= waited * 1000, log + ", waited " + waited + " ms");
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', value = {"tomcat | true | ~u\\d+ \\d+", "jetty | true | ~u\\d+ \\d+", "tomcat | false | null null"})
    void linesOfTheLogHaveClassAndWait(String server, boolean mdc, String said) throws Exception {
        start(server, "pathfence.workers=1", "pathfence.mdc=" + mdc);
        shop.slow.shut();
        var held = get("/slow");
        awaitInFlight(1);
        var waits = get("/logged");
        awaitWaiting(1);
        shop.slow.open();
        assertEquals("slow", held.get().body());
        assertTrue(waits.get().body().matches(said), waits.get().body());
        assertTrue(get("/logged").get().body().matches(said));
        awaitInFlight(0);
    }

    private static Path only(Path folder) throws IOException {
        try (Stream<Path> files = Files.list(folder)) {
            return files.findFirst().orElseThrow();
        }
    }

    /** A client that leaves is gone from what is under way. */
    @ParameterizedTest
    @ValueSource(strings = {"tomcat", "jetty"})
    void whoLeftIsNotUnderWay(String server) throws Exception {
        start(server, "pathfence.workers=1");
        shop.slow.shut();
        var held = get("/slow");
        awaitInFlight(1);
        var left = asking("/pages/7", "accept: */*");
        awaitWaiting(1);
        left.close();
        shop.slow.open();
        held.get();
        until(() -> fence.inFlight() + fence.waiting() == 0, fence);
        until(() -> active() == 0, fence);
    }

    @ParameterizedTest
    @ValueSource(strings = {"tomcat", "jetty"})
    void pagesOfOtherOriginsSeeARefusal(String server) throws Exception {
        start(server, "pathfence.workers=1", "pathfence.trusted=true");
        assertEquals(ORIGIN, allowed(refused("origin", ORIGIN)), "an origin that the application allows");
        assertEquals("", allowed(refused("origin", "http://eve.example")), "another");
        assertEquals("", allowed(refused("accept", "*/*")), "none");
    }

    private static String allowed(HttpResponse<String> refused) {
        assertEquals(503, refused.statusCode());
        return refused.headers().firstValue("access-control-allow-origin").orElse("");
    }

    private HttpResponse<String> refused(String header, String value) throws Exception {
        shop.slow.shut();
        var held = get("/slow");
        awaitInFlight(1);
        var refused = get("/pages/8", "x-pf-deadline", "1", header, value).get();
        shop.slow.open();
        held.get();
        awaitInFlight(0);
        return refused;
    }

    @ParameterizedTest
    @ValueSource(strings = {"tomcat", "jetty"})
    void theApplicationWritesRefusals(String server) throws Exception {
        start(server, "pathfence.workers=1", "pathfence.trusted=true", "test.refused=write");
        HttpResponse<String> r = refused("accept", "*/*");
        assertEquals("429 {\"why\":\"expired\"}", r.statusCode() + " " + r.body());
        assertEquals("expired", r.headers().firstValue("x-pf-shed").orElse(""));
        context.close();
        start(server, "pathfence.workers=1", "pathfence.trusted=true", "test.refused=send");
        r = refused("accept", "application/json");
        assertEquals(503, r.statusCode());
        assertTrue(r.body().contains("\"path\":\"/pages/8\""), "the application's error page: " + r.body());
    }
}
