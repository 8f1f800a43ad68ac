// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.spring;

import dev.temper.pathfence.ClassState;
import dev.temper.pathfence.Fence;
import java.io.IOException;
import java.net.Socket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;
import org.junit.jupiter.api.AfterEach;
import org.springframework.boot.SpringApplication;
import org.springframework.context.ConfigurableApplicationContext;

/** A real Tomcat or Jetty with the starter, and clients over real HTTP. */
abstract class InServer {
    private final HttpClient client = HttpClient.newHttpClient();
    ConfigurableApplicationContext context;
    Fence fence;
    Shop shop;

    void start(String server, String... more) {
        Map<String, Object> properties = new LinkedHashMap<>(Map.of(
                "server.port", "0",
                "server.http2.enabled", String.valueOf(server.endsWith("HTTP/2")),
                "test.server", server.split(",")[0],
                "server.tomcat.threads.max", "8",
                "server.tomcat.threads.min-spare", "1",
                "server.jetty.threads.max", "14",
                "pathfence.workers", "4",
                "pathfence.target", "60s",
                "management.endpoints.web.exposure.include", "pathfence,metrics,health",
                "logging.level.root", "ERROR"));
        // What is there for other tests: Apache's client, by its names in Spring Boot 4 and 3, and a database.
        properties.put("spring.http.clients.imperative.factory", "jdk");
        properties.put("spring.http.client.factory", "jdk");
        properties.put("spring.autoconfigure.exclude", "org.springframework.boot.autoconfigure.jdbc.DataSourceAutoConfiguration");
        for (String m : more) properties.put(m.substring(0, m.indexOf('=')), m.substring(m.indexOf('=') + 1));
        List<String> arguments = new ArrayList<>();
        properties.forEach((name, value) -> arguments.add("--" + name + "=" + value));
        context = SpringApplication.run(Shop.class, arguments.toArray(String[]::new));
        fence = context.getBean(Fence.class);
        shop = context.getBean(Shop.class);
    }

    @AfterEach
    void stop() {
        if (shop != null) {
            shop.slow.open();
            shop.stuck.open();
        }
        if (context != null) context.close();
    }

    URI uri(String path) {
        String port = context.getEnvironment().getProperty("local.server.port");
        return URI.create("http://127.0.0.1:" + port + path);
    }

    CompletableFuture<HttpResponse<String>> get(String path, String... headers) {
        HttpRequest.Builder b = HttpRequest.newBuilder(uri(path));
        for (int i = 0; i < headers.length; i += 2) b.header(headers[i], headers[i + 1]);
        return client.sendAsync(b.build(), HttpResponse.BodyHandlers.ofString());
    }

    CompletableFuture<HttpResponse<String>> post(String path, String body, String... headers) {
        HttpRequest.Builder b = HttpRequest.newBuilder(uri(path)).POST(HttpRequest.BodyPublishers.ofString(body));
        for (int i = 0; i < headers.length; i += 2) b.header(headers[i], headers[i + 1]);
        return client.sendAsync(b.build(), HttpResponse.BodyHandlers.ofString());
    }

    /** Waits, and says at the end of a test's time what the fence was like. */
    static void until(BooleanSupplier seen, Fence fence) {
        while (!seen.getAsBoolean()) {
            if (Thread.interrupted()) throw new AssertionError("it does not come to that: " + fence.states());
            Thread.yield();
        }
    }

    void awaitInFlight(long count) {
        until(() -> fence.inFlight() == count, fence);
    }

    void awaitWaiting(long count) {
        until(() -> fence.waiting() == count, fence);
    }

    ClassState state(String name) {
        return fence.state(name).orElseThrow();
    }

    /** Holds the only worker until what was asked for waits, and gives the answers. */
    List<HttpResponse<String>> waited(int count, Supplier<List<CompletableFuture<HttpResponse<String>>>> ask)
            throws Exception {
        shop.slow.shut();
        var held = get("/slow");
        awaitInFlight(1);
        var asked = ask.get();
        awaitWaiting(count);
        shop.slow.open();
        held.get();
        List<HttpResponse<String>> answers = new ArrayList<>();
        for (var a : asked) answers.add(a.get(60, TimeUnit.SECONDS));
        awaitInFlight(0);
        return answers;
    }

    /** A client that has asked, and may leave without an answer. */
    Socket asking(String page, String header) throws IOException {
        Socket client = new Socket("127.0.0.1", uri("").getPort());
        String request = "GET " + page + " HTTP/1.1\r\nhost: x\r\n" + header + "\r\n\r\n";
        client.getOutputStream().write(request.getBytes(StandardCharsets.US_ASCII));
        return client;
    }
}
