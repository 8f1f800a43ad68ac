// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.bench;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.temper.pathfence.Fence;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.context.ConfigurableApplicationContext;

/** The whole shop in one virtual machine, over loopback. */
class ShopTest {
    private static final String LONG = "5000000"; // longer than anything else here takes; nothing waits for its end

    private final HttpClient client = HttpClient.newHttpClient();
    private final List<ConfigurableApplicationContext> services = new ArrayList<>();

    @AfterEach
    void stop() {
        for (int i = services.size(); i-- > 0; ) services.get(i).close();
    }

    private int start(String... arguments) {
        services.add(Shop.start(ShopOptions.parse(arguments)));
        return Shop.port(services.get(services.size() - 1));
    }

    /** One worker for each path, and all services in {@link #services}: catalogue, cart, orders, front end. */
    private int shop(String... arm) {
        int catalogue = start("catalogue");
        int cart = start("cart");
        int orders = start("orders", "--downstream", "cart");
        List<String> front = new ArrayList<>(List.of("front", "--workers", "3"));
        for (String below : List.of("catalogue", "cart", "orders")) front.addAll(List.of("--downstream", below));
        front.addAll(List.of(arm));
        int port = start(front.toArray(String[]::new));
        Shop.obey(services.get(2), "downstream cart " + cart);
        Shop.obey(services.get(3), "downstream catalogue " + catalogue);
        Shop.obey(services.get(3), "downstream cart " + cart);
        Shop.obey(services.get(3), "downstream orders " + orders);
        return port;
    }

    private CompletableFuture<HttpResponse<Void>> ask(int port, String what, String work) {
        URI uri = URI.create("http://127.0.0.1:" + port + "/" + what + "?work_us=" + work);
        HttpRequest post = HttpRequest.newBuilder(uri).POST(HttpRequest.BodyPublishers.noBody()).build();
        return client.sendAsync(post, BodyHandlers.discarding());
    }

    private int status(int port, String what) {
        return ask(port, what, "100").join().statusCode();
    }

    @Test
    void paths() {
        int port = shop();
        for (String path : List.of("browse", "cart", "checkout")) assertEquals(200, status(port, path), path);
        assertEquals(0, services.get(3).getBeanNamesForType(Fence.class).length);
    }

    /** Checking out needs both services below: that of the cart is reached through the orders'. */
    @ParameterizedTest
    @ValueSource(ints = {1, 2})
    void checkingOutCallsBoth(int below) {
        int port = shop();
        services.get(below).close();
        assertEquals(500, status(port, "checkout"));
        assertEquals(200, status(port, "browse"));
    }

    /** Who calls waits for being told where. */
    @Test
    void aCallBeforeItIsKnownWhere() throws InterruptedException {
        int cart = start("cart");
        start("orders", "--downstream", "cart");
        ShopClient caller = services.get(1).getBean(ShopClient.class);
        AtomicBoolean answered = new AtomicBoolean();
        Thread call = new Thread(() -> {
            caller.call("cart", 100);
            answered.set(true);
        });
        call.start();
        while (call.getState() != Thread.State.WAITING && call.isAlive()) Thread.onSpinWait();
        Shop.obey(services.get(1), "downstream cart " + cart);
        call.join();
        assertTrue(answered.get());
    }

    /** Of two at a time on one path one is refused; the other paths have their own parts. */
    @Test
    void aBulkhead() {
        int port = shop("--admission", "bulkhead");
        HttpResponse<?> first = (HttpResponse<?>) CompletableFuture.anyOf(
                        ask(port, "checkout", LONG), ask(port, "checkout", LONG))
                .join();
        assertEquals(503, first.statusCode());
        assertEquals(Optional.of("full"), first.headers().firstValue("x-pf-shed"));
        for (String path : List.of("browse", "cart", "browse")) assertEquals(200, status(port, path), path);
    }

    /** All of a fence's classes see what is theirs: the starter's filter is in force, and knows the paths. */
    @Test
    void aFence() {
        String classes = Stream.of("browse", "cart", "checkout")
                .map(path -> "{\"name\": \"" + path + "\", \"keys\": [\"" + path + "\"]}")
                .collect(Collectors.joining(", "));
        int port = shop("--fence", "{\"workers\": 3, \"classes\": [" + classes + "]}");
        for (String path : List.of("browse", "cart", "checkout")) assertEquals(200, status(port, path), path);
        Fence fence = services.get(3).getBean(Fence.class);
        List<String> granted = fence.states().stream()
                .filter(c -> c.granted() > 0)
                .map(c -> c.name() + " " + c.granted())
                .sorted()
                .toList();
        assertEquals(List.of("browse 1", "cart 1", "checkout 1"), granted);
    }

    @Test
    void whoIsSlow() {
        int port = shop();
        Shop.obey(services.get(2), "slow 1000000000");
        CompletableFuture<?> slow = ask(port, "checkout", "1000");
        Stream.of("browse", "cart").forEach(path -> assertEquals(200, status(port, path), path));
        assertEquals(false, slow.isDone());
    }

    @Test
    void unknownArguments() {
        for (String[] wrong : new String[][] {{}, {"stock"}, {"front", "--workers"}, {"front", "--size", "1"}})
            assertThrows(IllegalArgumentException.class, () -> ShopOptions.parse(wrong));
    }

    @Test
    void anUnknownCommand() {
        start("cart");
        assertThrows(IllegalArgumentException.class, () -> Shop.obey(services.get(0), "stop"));
    }
}
