// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.spring;

import com.sun.net.httpserver.HttpServer;
import com.zaxxer.hikari.HikariDataSource;
import dev.temper.pathfence.Config;
import dev.temper.pathfence.Fence;
import dev.temper.pathfence.Serving;
import dev.temper.pathfence.pool.FencedDataSource;
import feign.Capability;
import feign.Feign;
import feign.RequestLine;
import feign.Target;
import io.grpc.CallOptions;
import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.InsecureServerCredentials;
import io.grpc.ManagedChannel;
import io.grpc.MethodDescriptor;
import io.grpc.Server;
import io.grpc.ServerServiceDefinition;
import io.grpc.stub.ClientCalls;
import io.grpc.stub.ServerCalls;
import io.lettuce.core.ClientOptions;
import io.lettuce.core.RedisClient;
import io.lettuce.core.api.sync.RedisCommands;
import io.lettuce.core.protocol.ProtocolVersion;
import io.lettuce.core.resource.ClientResources;
import io.lettuce.core.tracing.MicrometerTracing;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.binder.grpc.ObservationGrpcClientInterceptor;
import io.micrometer.core.instrument.binder.httpcomponents.hc5.ObservationExecChainHandler;
import io.micrometer.core.instrument.binder.okhttp3.OkHttpObservationInterceptor;
import io.micrometer.java11.instrument.binder.jdk.MicrometerHttpClient;
import io.micrometer.observation.Observation;
import io.micrometer.observation.ObservationRegistry;
import io.micrometer.observation.transport.RequestReplySenderContext;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.sql.Connection;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executors;
import javax.sql.DataSource;
import okhttp3.Callback;
import okhttp3.OkHttpClient;
import okhttp3.Request;
import okhttp3.Response;
import org.apache.hc.client5.http.classic.methods.HttpGet;
import org.apache.hc.client5.http.impl.classic.BasicHttpClientResponseHandler;
import org.apache.hc.client5.http.impl.classic.CloseableHttpClient;
import org.apache.hc.client5.http.impl.classic.HttpClients;
import org.springframework.beans.factory.BeanFactory;
import org.springframework.beans.factory.annotation.Qualifier;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Import;
import org.springframework.http.client.ClientHttpRequestExecution;
import org.springframework.http.client.ClientHttpResponse;
import org.springframework.http.client.HttpComponentsClientHttpRequestFactory;
import org.springframework.http.client.support.HttpRequestWrapper;
import org.springframework.jdbc.datasource.lookup.AbstractRoutingDataSource;
import org.springframework.web.client.RestClient;
import org.springframework.web.client.RestTemplate;
import org.springframework.web.reactive.function.client.WebClient;
import org.springframework.web.servlet.function.RouterFunction;
import org.springframework.web.servlet.function.RouterFunctions;
import org.springframework.web.servlet.function.ServerResponse;

/** A service whose paths call two downstreams, a slow and a quick one, by each client that there is. */
@EnableAutoConfiguration
@Import(Servers.class)
class Caller {
    /** A downstream by HTTP or gRPC, or a pool of one connection: what it is called, and how it is made to hang. */
    interface Downstream {
        String edge();

        void hang() throws Exception;

        void goOn() throws Exception;
    }

    /** Calls of it end when a gate opens. */
    private record Gated(String edge, Shop.Gate gate) implements Downstream {
        @Override
        public void hang() {
            gate.shut();
        }

        @Override
        public void goOn() {
            gate.open();
        }
    }

    /** Whoever takes the only connection makes the others wait for it. */
    private static final class Pooled implements Downstream {
        private final String edge;
        private final DataSource pool;
        private Connection taken;

        Pooled(String edge, DataSource pool) {
            this.edge = edge;
            this.pool = pool;
        }

        @Override
        public String edge() {
            return edge;
        }

        @Override
        public void hang() throws Exception {
            taken = pool.getConnection();
        }

        @Override
        public void goOn() throws Exception {
            taken.close();
        }
    }

    /** Calls one of the two. */
    private interface Call {
        Object to(String downstream) throws Exception;
    }

    /** Feign's. */
    private interface Fetching {
        @RequestLine("GET /")
        String fetch();
    }

    private enum Text implements MethodDescriptor.Marshaller<String> {
        ASCII;

        @Override
        public InputStream stream(String value) {
            return new ByteArrayInputStream(value.getBytes());
        }

        @Override
        public String parse(InputStream stream) {
            try {
                return new String(stream.readAllBytes());
            } catch (IOException e) {
                throw new IllegalStateException(e);
            }
        }
    }

    private static final MethodDescriptor<String, String> METHOD = MethodDescriptor.<String, String>newBuilder()
            .setType(MethodDescriptor.MethodType.UNARY)
            .setFullMethodName("stock/count")
            .setRequestMarshaller(Text.ASCII)
            .setResponseMarshaller(Text.ASCII)
            .build();

    private final Map<String, Downstream> http = new HashMap<>();
    private final Map<String, Downstream> grpc = new HashMap<>();
    private final Map<String, ManagedChannel> channels = new HashMap<>();
    private final Map<String, Downstream> redis = new HashMap<>();
    private final Map<String, Integer> redisPorts = new HashMap<>();
    private final Map<String, Downstream> services = new HashMap<>();
    private final Map<String, Downstream> named = new HashMap<>();
    private final Map<String, Downstream> pooled = new HashMap<>();
    private final Map<String, Call> calls = new HashMap<>();
    private final Map<String, Map<String, Downstream>> downstreams = new HashMap<>();

    Caller() throws IOException {
        for (String name : List.of("slow", "quick")) {
            Shop.Gate gate = new Shop.Gate();
            http.put(name, new Gated(httpServer(gate), gate));
            grpc.put(name, new Gated(grpcServer(name, gate), gate));
            redisPorts.put(name, redisServer(gate));
            redis.put(name, new Gated("redis-" + name, gate));
            services.put(name, new Gated("stock-" + name, gate));
            named.put(name, new Gated("search-" + name, gate));
        }
    }

    private static String httpServer(Shop.Gate gate) throws IOException {
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
        server.setExecutor(Executors.newCachedThreadPool(Caller::daemon));
        server.createContext("/", exchange -> {
            pass(gate);
            exchange.sendResponseHeaders(200, 2);
            exchange.getResponseBody().write("ok".getBytes());
            exchange.close();
        });
        server.start();
        return "127.0.0.1:" + server.getAddress().getPort();
    }

    private String grpcServer(String name, Shop.Gate gate) throws IOException {
        Server server = Grpc.newServerBuilderForPort(0, InsecureServerCredentials.create())
                .addService(ServerServiceDefinition.builder("stock")
                        .addMethod(METHOD, ServerCalls.asyncUnaryCall((request, answer) -> {
                            pass(gate);
                            answer.onNext("ok");
                            answer.onCompleted();
                        }))
                        .build())
                .build()
                .start();
        String address = "127.0.0.1:" + server.getPort();
        channels.put(name, Grpc.newChannelBuilder(address, InsecureChannelCredentials.create()).build());
        return address;
    }

    /** As much of Redis as Lettuce needs: it answers GET when the gate is open. */
    private static int redisServer(Shop.Gate gate) throws IOException {
        ServerSocket server = new ServerSocket(0, 0, InetAddress.getLoopbackAddress());
        daemon(() -> {
            while (true) {
                try (Socket client = server.accept();
                        BufferedReader in = new BufferedReader(new InputStreamReader(client.getInputStream()))) {
                    for (String command = command(in); command != null; command = command(in)) {
                        if (command.equals("GET")) pass(gate);
                        client.getOutputStream().write((command.equals("PING") ? "+PONG\r\n" : "+OK\r\n").getBytes());
                    }
                } catch (IOException e) {
                    // The next one, please.
                }
            }
        }).start();
        return server.getLocalPort();
    }

    /** A command's name; what it is about is left out. */
    private static String command(BufferedReader in) throws IOException {
        String count = in.readLine();
        if (count == null) return null;
        List<String> words = new ArrayList<>();
        for (int left = Integer.parseInt(count.substring(1)); left > 0; left--) {
            in.readLine(); // its length
            words.add(in.readLine());
        }
        return words.get(0);
    }

    private static RedisCommands<String, String> connected(int port, ObservationRegistry observations, String name) {
        ClientResources resources = ClientResources.builder()
                .ioThreadPoolSize(2)
                .tracing(new MicrometerTracing(observations, name))
                .build();
        RedisClient client = RedisClient.create(resources, "redis://127.0.0.1:" + port);
        client.setOptions(ClientOptions.builder().protocolVersion(ProtocolVersion.RESP2).build());
        return client.connect().sync();
    }

    private static Thread daemon(Runnable r) {
        Thread t = new Thread(r);
        t.setDaemon(true);
        return t;
    }

    private static void pass(Shop.Gate gate) {
        try {
            gate.pass();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    Downstream downstream(String by, String name) {
        return downstreams.get(by).get(name);
    }

    private void add(String by, Map<String, Downstream> to, Call call) {
        calls.put(by, call);
        downstreams.put(by, to);
    }

    private URI uri(String name) {
        return URI.create("http://" + http.get(name).edge() + "/");
    }

    private HttpRequest request(String name) {
        return HttpRequest.newBuilder(uri(name)).build();
    }

    @Bean
    RestTemplate template() {
        return new RestTemplate();
    }

    @Bean
    HttpClient jdk() {
        return HttpClient.newHttpClient();
    }

    @Bean
    OkHttpClient ok() {
        return new OkHttpClient();
    }

    @Bean
    CloseableHttpClient apache() {
        return HttpClients.createDefault();
    }

    private static HikariDataSource pool(String name) {
        HikariDataSource pool = new HikariDataSource();
        pool.setJdbcUrl("jdbc:h2:mem:" + name);
        pool.setMaximumPoolSize(1);
        pool.setConnectionTimeout(60_000);
        return pool;
    }

    @Bean
    HikariDataSource stock() {
        return pool("stock");
    }

    @Bean
    HikariDataSource prices() {
        return pool("prices");
    }

    @Bean
    HikariDataSource inner() {
        return pool("inner");
    }

    @Bean
    DataSource fenced(@Qualifier("inner") DataSource inner) {
        return new FencedDataSource(inner, Fence.of(Config.builder(1).target(60_000_000_000L).build()), "behind-a-fence");
    }

    /** Chooses the slow one. */
    @Bean
    DataSource routing(@Qualifier("stock") DataSource stock) {
        AbstractRoutingDataSource routing = new AbstractRoutingDataSource() {
            @Override
            protected Object determineCurrentLookupKey() {
                return "stock";
            }
        };
        routing.setTargetDataSources(Map.of("stock", stock));
        return routing;
    }

    /** As a load balancer goes from a service's name to an address. */
    private ClientHttpResponse balance(
            org.springframework.http.HttpRequest request, byte[] body, ClientHttpRequestExecution next) throws IOException {
        return next.execute(
                new HttpRequestWrapper(request) {
                    @Override
                    public URI getURI() {
                        return uri(request.getURI().getHost().replace("stock-", ""));
                    }
                },
                body);
    }

    @Bean
    RouterFunction<ServerResponse> imperative(
            RestClient.Builder rest,
            WebClient.Builder web,
            RestTemplate template,
            BeanFactory beans,
            CloseableHttpClient apache,
            Capability feign) {
        RestClient restClient = rest.build();
        add("rest", http, to -> restClient.get().uri(uri(to)).retrieve().body(String.class));
        WebClient webClient = web.build();
        add("web", http, to -> webClient.get().uri(uri(to)).retrieve().bodyToMono(String.class).block());
        add("template", http, to -> template.getForObject(uri(to), String.class));
        RestTemplate builtTemplate = Servers.built(beans);
        add("built", http, to -> builtTemplate.getForObject(uri(to), String.class));
        RestTemplate balanced = Servers.built(beans);
        balanced.setRequestFactory(new HttpComponentsClientHttpRequestFactory(apache));
        balanced.getInterceptors().add(this::balance);
        add("balanced", services, to -> balanced.getForObject("http://stock-" + to + "/", String.class));
        add("apache", http, to -> apache.execute(new HttpGet(uri(to)), new BasicHttpClientResponseHandler()));
        add("feign", http, to -> Feign.builder()
                .addCapability(feign)
                .target(new Target.HardCodedTarget<>(Fetching.class, uri(to).toString()))
                .fetch());
        return RouterFunctions.route()
                .GET("/call/{by}/{to}", r -> {
                    calls.get(r.pathVariable("by")).to(r.pathVariable("to"));
                    return ServerResponse.ok().body("called");
                })
                .build();
    }

    /** Clients of others' libraries. */
    @Bean
    @SuppressWarnings("deprecation") // Micrometer's hook for Apache's client is still there.
    Callable<String> others(HttpClient jdk, OkHttpClient ok, MeterRegistry meters, ObservationRegistry observations) {
        add("jdk", http, to -> jdk.send(request(to), BodyHandlers.ofString()));
        add("jdk-later", http, to -> jdk.sendAsync(request(to), BodyHandlers.ofString()).get());
        HttpClient observed = MicrometerHttpClient.instrumentationBuilder(HttpClient.newHttpClient(), meters)
                .observationRegistry(observations)
                .build();
        add("jdk-observed", http, to -> observed.send(request(to), BodyHandlers.ofString()));
        add("jdk-observed-later", http, to -> observed.sendAsync(request(to), BodyHandlers.ofString()).get());
        add("ok", http, to -> {
            try (Response answer = ok.newCall(okRequest(to)).execute()) {
                return answer.code();
            }
        });
        add("ok-later", http, to -> enqueued(ok, okRequest(to)).get());
        OkHttpClient okObserved = new OkHttpClient.Builder()
                .addInterceptor(OkHttpObservationInterceptor.builder(observations, "ok").build())
                .build();
        add("ok-observed", http, to -> {
            try (Response answer = okObserved.newCall(okRequest(to)).execute()) {
                return answer.code();
            }
        });
        CloseableHttpClient apacheObserved = HttpClients.custom()
                .addExecInterceptorFirst("observed", new ObservationExecChainHandler(observations))
                .build();
        add("apache-observed", http, to -> apacheObserved.execute(new HttpGet(uri(to)), new BasicHttpClientResponseHandler()));
        ObservationGrpcClientInterceptor seen = new ObservationGrpcClientInterceptor(observations);
        add("grpc", grpc, to -> ClientCalls.blockingUnaryCall(
                io.grpc.ClientInterceptors.intercept(channels.get(to), seen), METHOD, CallOptions.DEFAULT, "ask"));
        Map<String, RedisCommands<String, String>> lettuce = new HashMap<>();
        redis.forEach((name, downstream) -> lettuce.put(name, connected(redisPorts.get(name), observations, downstream.edge())));
        add("lettuce", redis, to -> lettuce.get(to).get("key"));
        add("unseen", http, to -> {
            try (InputStream in = uri(to).toURL().openStream()) {
                return in.readAllBytes();
            }
        });
        add("own", named, to -> wait(named, to));
        add("observed", named, to -> observation(observations, to).observeChecked(() -> wait(named, to)));
        add("within", named, to -> observation(observations, to)
                .observeChecked(() -> jdk.send(request(to), BodyHandlers.ofString())));
        return () -> "";
    }

    private static Object wait(Map<String, Downstream> of, String to) throws InterruptedException {
        ((Gated) of.get(to)).gate.pass();
        return to;
    }

    /** As a client's library makes one that names what it calls. */
    private static Observation observation(ObservationRegistry observations, String to) {
        RequestReplySenderContext<Object, Object> call = new RequestReplySenderContext<>((carrier, key, value) -> {});
        call.setRemoteServiceName("search-" + to);
        return Observation.createNotStarted("search.client", () -> call, observations);
    }

    private Request okRequest(String to) {
        return new Request.Builder().url(uri(to).toString()).build();
    }

    private static CompletableFuture<Integer> enqueued(OkHttpClient ok, Request request) {
        CompletableFuture<Integer> status = new CompletableFuture<>();
        ok.newCall(request).enqueue(new Callback() {
            @Override
            public void onFailure(okhttp3.Call call, IOException e) {
                status.completeExceptionally(e);
            }

            @Override
            public void onResponse(okhttp3.Call call, Response answer) {
                answer.close();
                status.complete(answer.code());
            }
        });
        return status;
    }

    /** Data sources; the quick one is the same for all. */
    @Bean
    Callable<String> sources(
            @Qualifier("stock") DataSource stock,
            @Qualifier("prices") DataSource prices,
            @Qualifier("fenced") DataSource fenced,
            @Qualifier("routing") DataSource routing) {
        Downstream quick = new Pooled("prices", prices);
        Map.of("jdbc", stock, "jdbc-routed", routing, "jdbc-fenced", fenced).forEach((by, source) -> {
            String edge = by.equals("jdbc-fenced") ? "behind-a-fence" : "stock";
            add(by, Map.of("slow", new Pooled(edge, source), "quick", quick), to -> select(to.equals("slow") ? source : prices));
        });
        return () -> "";
    }

    private static boolean select(DataSource from) throws Exception {
        try (Connection c = from.getConnection()) {
            return c.createStatement().execute("SELECT 1");
        }
    }

    /** What the README shows for all else: paths that call an edge by its name, and nothing that it stands for. */
    @Bean
    RouterFunction<ServerResponse> said() {
        return RouterFunctions.route()
                .GET("/said/{edge}", r -> {
                    try (Serving.Scope call = Serving.calling(r.pathVariable("edge"))) {
                        return ServerResponse.ok().body("called");
                    }
                })
                .build();
    }
}
