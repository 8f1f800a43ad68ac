// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.spring;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.core.AppenderBase;
import com.zaxxer.hikari.HikariDataSource;
import dev.temper.pathfence.ClassState;
import dev.temper.pathfence.Fence;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.slf4j.LoggerFactory;
import org.springframework.beans.DirectFieldAccessor;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.test.context.FilteredClassLoader;
import org.springframework.boot.test.context.runner.WebApplicationContextRunner;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.http.HttpMethod;
import org.springframework.http.StreamingHttpOutputMessage;
import org.springframework.http.client.ClientHttpRequest;
import org.springframework.http.client.ClientHttpRequestFactory;
import org.springframework.web.client.RestTemplate;

/** Clients of others, real ones, in one service: what they call is seen, once, by its name. */
@Timeout(120)
class OutgoingTest {
    private static final int LEARNED_AFTER = 8; // requests of a path
    private static final int MANY = 6; // more than there are workers

    private static final HttpClient CLIENT = HttpClient.newHttpClient();
    /** From an edge to the class of those who say that they call it. */
    private static final Map<String, String> SAID = new HashMap<>();

    /** From a property to the bean that it switches off. */
    private static final Map<String, String> BEANS = Map.of(
            "observations", "pathfenceClientObservations",
            "jdbc", "pathfenceDataSources",
            "rest-template", "pathfenceRestTemplates",
            "feign", "pathfenceFeign",
            "http-client", "pathfenceHttpClients",
            "ok-http", "pathfenceOkHttpClients",
            "apache", "pathfenceApacheClients",
            "unseen", "pathfenceUnseenCalls");

    private static final WebApplicationContextRunner ALL = new WebApplicationContextRunner()
            .withConfiguration(AutoConfigurations.of(PathfenceAutoConfiguration.class, OutgoingAutoConfiguration.class));

    private static ConfigurableApplicationContext context;
    private static Fence fence;

    @BeforeAll
    static void start() {
        context = SpringApplication.run(Caller.class, "--server.port=0", "--test.server=tomcat", "--server.tomcat.threads.max=10",
                "--pathfence.workers=4", "--pathfence.target=60s", "--pathfence.trusted=true", "--logging.level.root=ERROR",
                "--logging.level." + UnseenCalls.class.getName() + "=WARN");
        fence = context.getBean(Fence.class);
    }

    @AfterAll
    static void stop() {
        context.close();
    }

    private static CompletableFuture<HttpResponse<String>> ask(String path, String key) {
        String port = context.getEnvironment().getProperty("local.server.port");
        URI uri = URI.create("http://127.0.0.1:" + port + path);
        return CLIENT.sendAsync(
                HttpRequest.newBuilder(uri).header("x-pf-path", key).build(), HttpResponse.BodyHandlers.ofString());
    }

    private static void served(CompletableFuture<HttpResponse<String>> asked, String what) throws Exception {
        HttpResponse<String> answer = asked.get(30, TimeUnit.SECONDS);
        assertEquals("200 called", answer.statusCode() + " " + answer.body(), what);
    }

    /** The class that a path is learned into, as the endpoint says it. */
    private static String learned(String path, String key) throws Exception {
        List<CompletableFuture<HttpResponse<String>>> asked = new ArrayList<>();
        for (int i = 0; i < LEARNED_AFTER; i++) asked.add(ask(path, key));
        for (var a : asked) served(a, key);
        awaitInFlight(0);
        return context.getBean(FenceEndpoint.class).state().classes().stream()
                .filter(c -> c.keys().contains(key))
                .map(ClassState::name)
                .findFirst()
                .orElseThrow(() -> new AssertionError(key + " has no class: " + fence.states()));
    }

    private static void awaitInFlight(long count) {
        InServer.until(() -> fence.inFlight() == count, fence);
    }

    /**
     * A path that calls by a client is of the same class as one that says by itself that it calls that edge, and no other:
     * the edge is seen, by that name, and once.
     */
    @ParameterizedTest
    @ValueSource(strings = {
        "rest", "web", "template", "built", "balanced", "feign", "jdk", "jdk-later", "jdk-observed", "jdk-observed-later",
        "ok", "ok-later", "ok-observed", "apache", "apache-observed", "grpc", "lettuce", "observed", "within", "jdbc", "jdbc-routed", "jdbc-fenced"
    })
    void whatAClientCallsIsSeen(String by) throws Exception {
        Caller caller = context.getBean(Caller.class);
        List<String> classes = new ArrayList<>();
        for (String to : List.of("slow", "quick")) {
            String edge = caller.downstream(by, to).edge();
            if (!SAID.containsKey(edge)) SAID.put(edge, learned("/said/" + edge, "0." + edge));
            classes.add(learned("/call/" + by + "/" + to, by + "." + to));
            assertEquals(SAID.get(edge), classes.get(classes.size() - 1), () -> by + " calls " + edge + ": " + fence.states());
        }
        assertNotEquals(classes.get(0), classes.get(1), "two downstreams");
        innocentPathsAreServed(by, caller.downstream(by, "slow"));
    }

    /** Spring Boot's metrics of HikariCP look at the pool's field. */
    @Test
    void aPoolCanBeLookedInto() throws Exception {
        HikariDataSource stock = context.getBean("stock", HikariDataSource.class);
        stock.getConnection().close();
        assertNotNull(new DirectFieldAccessor(stock).getPropertyValue("pool"), "jdbc.connections.* would be gone");
    }

    /** Of paths that wait, those whose call is seen are not told of, nor those that wait for the application itself. */
    @Test
    void whatNobodySeesIsTold() throws Exception {
        CompletableFuture<String> told = new CompletableFuture<>();
        AppenderBase<ILoggingEvent> log = new AppenderBase<>() {
            @Override
            protected void append(ILoggingEvent event) {
                told.complete(event.getFormattedMessage());
            }
        };
        log.start();
        ((Logger) LoggerFactory.getLogger(UnseenCalls.class)).addAppender(log);
        Caller.Downstream slow = context.getBean(Caller.class).downstream("unseen", "slow");
        Caller.Downstream own = context.getBean(Caller.class).downstream("own", "slow");
        slow.hang();
        own.hang();
        var seen = ask("/call/rest/slow", "rest.told");
        var waits = ask("/call/own/slow", "own.told");
        awaitInFlight(2);
        var unseen = ask("/call/unseen/slow", "unseen.told");
        String message = told.get(60, TimeUnit.SECONDS);
        slow.goOn();
        own.goOn();
        served(seen, "seen");
        served(waits, "its own");
        served(unseen, "unseen");
        awaitInFlight(0);
        assertTrue(message.startsWith("unseen.told waits in dev.temper.pathfence.spring.Caller."), message);
    }

    /** With interceptors, each body is kept in memory: a large upload may not fit. */
    @Test
    void aTemplateStreamsAsBefore() throws Exception {
        ClientHttpRequestFactory requests = context.getBean(RestTemplate.class).getRequestFactory();
        ClientHttpRequest request = requests.createRequest(URI.create("http://127.0.0.1/"), HttpMethod.POST);
        assertTrue(request instanceof StreamingHttpOutputMessage, request.getClass().getName());
    }

    private static void assertThere(WebApplicationContextRunner runner, Set<String> properties) {
        Set<String> wanted = properties.stream().map(BEANS::get).collect(Collectors.toSet());
        runner.run(c -> assertEquals(wanted, BEANS.values().stream().filter(c::containsBean).collect(Collectors.toSet())));
    }

    @Test
    void onePropertySwitchesEachOff() {
        assertThere(ALL, BEANS.keySet());
        assertThere(ALL.withPropertyValues("pathfence.enabled=false"), Set.of());
        for (String left : List.of("observations", "jdbc")) {
            String[] off = BEANS.keySet().stream()
                    .filter(p -> !p.equals(left))
                    .map(p -> "pathfence.outgoing." + p + "=false")
                    .toArray(String[]::new);
            assertThere(ALL.withPropertyValues(off), Set.of(left));
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {
        "io.micrometer", "org.springframework.jdbc", "org.springframework.boot.restclient", "org.springframework.boot.web.client",
        "org.springframework.web.reactive", "feign", "okhttp3", "org.apache.hc"
    })
    void whatIsNotThereIsNotAskedFor(String library) {
        ALL.withClassLoader(new FilteredClassLoader(library))
                .run(c -> assertNull(c.getStartupFailure(), () -> "without " + library + ": " + c.getStartupFailure()));
    }

    private static void innocentPathsAreServed(String by, Caller.Downstream slow) throws Exception {
        slow.hang();
        List<CompletableFuture<HttpResponse<String>>> asked = new ArrayList<>();
        for (int i = 0; i < MANY; i++) asked.add(ask("/call/" + by + "/slow", by + ".slow"));
        InServer.until(() -> fence.inFlight() + fence.waiting() == MANY, fence);
        served(ask("/call/" + by + "/quick", by + ".quick"), "beside what hangs");
        slow.goOn();
        for (var a : asked) served(a, "when it goes on");
        awaitInFlight(0);
    }
}
