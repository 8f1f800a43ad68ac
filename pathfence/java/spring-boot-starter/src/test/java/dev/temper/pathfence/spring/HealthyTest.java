// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.spring;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;

import dev.temper.pathfence.Call;
import dev.temper.pathfence.ClassState;
import dev.temper.pathfence.PathContext;
import dev.temper.pathfence.Permit;
import dev.temper.pathfence.Serving;
import java.net.Socket;
import java.net.http.HttpResponse;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.mock.web.MockHttpServletRequest;
import org.springframework.web.client.ResourceAccessException;
import org.springframework.web.client.RestClient;
import org.springframework.web.reactive.function.client.WebClient;
import org.springframework.web.reactive.function.client.WebClientRequestException;

/** An ordinary service with nothing slow in it: the fence refuses nothing that the plain pool would have served. */
@Timeout(180)
class HealthyTest extends InServer {
    private List<CompletableFuture<HttpResponse<String>>> ask(String path, int count) {
        List<CompletableFuture<HttpResponse<String>>> asked = new ArrayList<>();
        for (int i = 0; i < count; i++) asked.add(get(path));
        return asked;
    }

    /** Until so many are under way; none may have been answered before. */
    private void awaitHeld(int count, List<CompletableFuture<HttpResponse<String>>> asked) {
        Held held = context.getBean(Held.class);
        while (held.count() != count)
            for (var a : asked) assertFalse(a.isDone(), () -> held.count() + " are under way, and one was answered: " + a);
    }

    private void assertNothingShed() {
        assertEquals(0, fence.states().stream().mapToLong(ClassState::shed).sum(), () -> "shed: " + fence.states());
    }

    /** Many more than there are workers, which are idle all the while. */
    @ParameterizedTest
    @CsvSource({
        "tomcat, /sse, 30", "tomcat, /poll, 30", "tomcat, /stream, 8", "jetty, /sse, 30", "jetty, /poll, 30", "jetty, /stream, 8"
    })
    void whatHoldsNoThreadHoldsNoWorker(String server, String path, int count) throws Exception {
        start(server, "pathfence.target=5s");
        var asked = ask(path, count);
        awaitHeld(count, asked);
        awaitInFlight(0);
        assertEquals("fast", get("/fast").get().body());
        context.getBean(Held.class).end();
        for (var a : asked) assertEquals(200, a.get(60, TimeUnit.SECONDS).statusCode());
        awaitInFlight(0);
        assertNothingShed();
    }

    @Test
    void whatIsUpgradedHoldsNoWorker() throws Exception {
        start("tomcat", "pathfence.target=5s");
        List<Socket> clients = new ArrayList<>();
        for (int i = 0; i < 10; i++) clients.add(asking("/upgrade", "connection: upgrade\r\nupgrade: any"));
        for (Socket c : clients) assertEquals("HTTP/1.1 101", new String(c.getInputStream().readNBytes(12)));
        awaitInFlight(0);
        assertEquals("fast", get("/fast").get().body());
        for (Socket c : clients) c.close();
        assertNothingShed();
    }

    /** Wherever they are: beside the only worker, which is taken. */
    @ParameterizedTest
    @CsvSource({
        "/actuator/health, spring.application.name=shop",
        "/actuator/health/liveness, management.endpoint.health.probes.enabled=true",
        "/manage/health, management.endpoints.web.base-path=/manage",
        "/manage, management.endpoints.web.base-path=/manage",
        "/health, management.endpoints.web.base-path=/",
        "/actuator/up, management.endpoints.web.path-mapping.health=up",
        "/livez, management.endpoint.health.probes.add-additional-paths=true",
        "/readyz, management.endpoint.health.probes.add-additional-paths=true",
        "/alive, management.endpoint.health.group.liveness.additional-path=server:/alive",
        "/api/actuator/health, spring.mvc.servlet.path=/api",
        "/own/actuator/health, server.servlet.context-path=/own",
        "/fast, pathfence.exempt[0]=/fast"
    })
    void healthIsAnsweredWhateverElseIs(String path, String property) throws Exception {
        start("tomcat", "pathfence.workers=1", "pathfence.target=2s", "management.endpoint.health.probes.enabled=true", property);
        try (Permit taken = fence.acquire(Call.of("other"))) {
            assertEquals(200, get(path).get().statusCode());
        }
        assertNothingShed();
    }

    /** What is the application's own is fenced, though it begins as an endpoint's path does. */
    @Test
    void whatIsNoEndpointIsFenced() throws Exception {
        start("tomcat", "management.endpoints.web.base-path=/fa");
        assertEquals("fast", get("/fast").get().body());
        awaitInFlight(0);
        assertEquals(1, fence.states().stream().mapToLong(ClassState::granted).sum());
    }

    /** What Spring serves has a key, whoever serves it; what clients make up has none of its own. */
    @Test
    void whatSpringServesHasAKey() {
        start("tomcat");
        RequestKeys keys = context.getBean(RequestKeys.class);
        String said = """
                GET /fast GET:/fast
                HEAD /fast GET:/fast
                OPTIONS /fast OPTIONS:/fast
                GET /missing/7 GET:/missing/:id
                GET /routed/7 GET:/routed/:id
                HEAD /routed/7 GET:/routed/:id
                POST /routed/7 POST:/routed/:id
                GET /nested/deep/7 GET:/nested/deep/:id
                GET /webjars/a.js GET:/webjars/++
                GET /nothing GET:/++
                PUT /fast PUT:/++
                BREW /nothing ANY:/++
                GET /annotated/a annotated
                POST /annotated/a annotated
                GET /annotated/other any
                GET /annotated/own own
                GET /annotated/chosen GET:/annotated/chosen
                """;
        for (String line : said.lines().toList()) {
            String[] is = line.split(" ");
            assertEquals(is[2], keys.key(new MockHttpServletRequest(is[0], is[1])), line);
        }
    }

    /** And is answered so. */
    @Test
    void functionalRoutesAreServed() throws Exception {
        start("tomcat");
        assertEquals("routed 7", get("/routed/7").get().body());
        assertEquals("nested 7", get("/nested/deep/7").get().body());
    }

    /** A path that is not known yet has all idle workers but two, and those, too, once something of it has come back. */
    @ParameterizedTest
    @ValueSource(strings = {"tomcat", "jetty"})
    void idleWorkersServeWhatIsNotKnown(String server) throws Exception {
        start(server, "pathfence.target=10s");
        for (int idle : new int[] {2, 4}) {
            shop.slow.shut();
            var asked = ask("/slow", 4);
            awaitInFlight(idle);
            awaitWaiting(4 - idle);
            shop.slow.open();
            for (var a : asked) assertEquals("slow", a.get().body());
            awaitInFlight(0);
        }
        assertNothingShed();
    }

    /** One request has shown how long the class's requests take. */
    @ParameterizedTest
    @CsvSource({"301, false", "304, false", "400, false", "401, false", "403, false", "404, false", "429, false", "200, true"})
    void answersThatAreNoWorkTeachNothing(int status, boolean teaches) throws Exception {
        start("tomcat", "pathfence.classes[0].name=own", "pathfence.classes[0].keys[0]=GET:/slow",
                "pathfence.classes[0].keys[1]=GET:/answers/:status");
        shop.slow.shut();
        var slow = get("/slow");
        awaitInFlight(1);
        Thread.sleep(500); // how long it takes, at least
        shop.slow.open();
        slow.get();
        awaitInFlight(0);
        long hold = state("own").hold();
        for (int i = 0; i < 40; i++) assertEquals(status, get("/answers/" + status).get().statusCode());
        awaitInFlight(0);
        assertEquals(teaches, state("own").hold() < hold);
        assertEquals(0, state("own").failed());
    }

    /** All workers are taken by requests that call their own service, which nobody has said; or which is named, and trusts. */
    @ParameterizedTest
    @CsvSource({"tomcat, false", "jetty, false", "tomcat, true", "jetty, true"})
    void aServiceMayCallItself(String server, boolean trusted) throws Exception {
        start(server, "pathfence.target=10s", "server.tomcat.threads.max=14", "pathfence.classes[0].name=calling", "pathfence.classes[0].keys[0]=GET:/calling", "pathfence.classes[0].hold=9s", "pathfence.service=shop", "pathfence.trusted=" + trusted, trusted ? "pathfence.peers[0]=127.0.0.1" : "pathfence.peers=");
        shop.slow.shut();
        var asked = ask("/calling", 4);
        awaitInFlight(4);
        shop.slow.open();
        for (var a : asked) assertEquals("fast", a.get(60, TimeUnit.SECONDS).body());
        awaitInFlight(0);
        assertNothingShed();
        assertEquals(trusted ? 503 : 500, get("/circle").get().statusCode(), "a refusal is passed on if a peer says so");
        assertEquals(1, fence.states().stream().mapToLong(ClassState::shed).sum());
        awaitInFlight(0);
    }

    /** A call's name is good once, while the call lasts and the request that makes it has its permit. */
    @Test
    void nobodyElseSaysWhoCalls() throws Exception {
        start("tomcat", "pathfence.workers=1", "pathfence.target=500ms");
        Within within = context.getBean(Within.class);
        String late;
        try (Permit over = fence.acquire(Call.of("other"))) {
            String name = within.name(over);
            assertEquals("fast", get("/fast", Within.HEADER, name).get().body());
            String forgotten = within.name(over);
            within.forget(forgotten);
            for (String useless : List.of(name, forgotten, new Within().name(over), "x" + name, "none"))
                assertEquals(503, get("/fast", Within.HEADER, useless).get().statusCode(), useless);
            late = within.name(over);
        }
        try (Permit taken = fence.acquire(Call.of("other"))) {
            assertEquals(503, get("/fast", Within.HEADER, late).get().statusCode(), "the request is over");
        }
    }

    @Test
    void aCallThatReachesNobodyLeavesNoName() throws Exception {
        start("tomcat");
        Within within = context.getBean(Within.class);
        String nobody = "http://127.0.0.1:1/";
        RestClient rest = context.getBean(RestClient.Builder.class).build();
        WebClient web = context.getBean(WebClient.Builder.class).build();
        try (Permit over = fence.acquire(Call.of("other"));
                Serving.Scope here = new Serving(over, PathContext.NONE, "", System.nanoTime()).enter()) {
            assertThrows(ResourceAccessException.class, () -> rest.get().uri(nobody).retrieve().toBodilessEntity());
            assertEquals(0, within.underWay());
            var call = web.get().uri(nobody).retrieve().toBodilessEntity();
            assertEquals(0, within.underWay(), "nobody has subscribed");
            for (int i = 0; i < 2; i++) assertThrows(WebClientRequestException.class, call::block);
            until(() -> within.underWay() <= 0, fence);
        }
    }

    /** It is on a thread of the server's already: to wait for a worker would help nobody. */
    @ParameterizedTest
    @ValueSource(strings = {"tomcat", "jetty"})
    void whatIsResumedWaitsForNoWorker(String server) throws Exception {
        start(server, "pathfence.workers=1");
        var asked = ask("/poll", 3);
        awaitHeld(3, asked);
        awaitInFlight(0);
        shop.slow.shut();
        var slow = get("/slow");
        awaitInFlight(1);
        context.getBean(Held.class).end();
        for (var a : asked) assertEquals("polled", a.get(60, TimeUnit.SECONDS).body());
        awaitInFlight(1);
        shop.slow.open();
        assertEquals("slow", slow.get().body());
        awaitInFlight(0);
    }
}
