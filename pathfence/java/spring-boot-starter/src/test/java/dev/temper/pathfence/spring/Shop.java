// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.spring;

import dev.temper.pathfence.Serving;
import jakarta.servlet.Filter;
import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.catalina.connector.Request;
import org.apache.catalina.connector.Response;
import org.apache.catalina.valves.ValveBase;
import org.slf4j.MDC;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.boot.autoconfigure.condition.ConditionalOnProperty;
import org.springframework.stereotype.Component;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.client.RestClient;
import org.springframework.web.context.request.async.DeferredResult;
import org.springframework.web.filter.OncePerRequestFilter;
import org.springframework.web.reactive.function.client.WebClient;

/** A service with a slow path, a fast one, and handlers that end in every way there is. */
@SpringBootApplication
@RestController
class Shop {
    /** Stops who comes while it is shut. */
    static final class Gate {
        private volatile CountDownLatch latch = new CountDownLatch(0);

        void shut() {
            latch = new CountDownLatch(1);
        }

        void open() {
            latch.countDown();
        }

        void pass() throws InterruptedException {
            latch.await();
        }
    }

    /** How often a chain of calls comes back to this service. */
    static final int ROUNDS = 2;

    final Gate slow = new Gate();
    final Gate stuck = new Gate();
    final CompletableFuture<DeferredResult<String>> pending = new CompletableFuture<>();
    private final AtomicInteger threads = new AtomicInteger();
    private final RestClient.Builder restClients;
    private final WebClient.Builder webClients;

    Shop(RestClient.Builder restClients, WebClient.Builder webClients) {
        this.restClients = restClients;
        this.webClients = webClients;
    }

    /** As if another service were between the two: what names the caller does not come through it. */
    private String getThroughAnother(HttpServletRequest r, String path) {
        RestClient c = restClients
                .clone()
                .baseUrl("http://127.0.0.1:" + r.getLocalPort())
                .requestInterceptor((request, body, next) -> {
                    request.getHeaders().remove(Within.HEADER);
                    return next.execute(request, body);
                })
                .build();
        return c.get().uri(path).retrieve().body(String.class);
    }

    private String get(HttpServletRequest r, String path) {
        RestClient c = restClients.clone().baseUrl("http://127.0.0.1:" + r.getLocalPort()).build();
        return c.get().uri(path).retrieve().body(String.class);
    }

    /** A valve that does not support asynchronous requests. */
    @Component
    @ConditionalOnProperty("test.synchronous")
    static final class Synchronous extends ValveBase {
        @Override
        public void invoke(Request request, Response response) throws IOException, ServletException {
            getNext().invoke(request, response);
        }
    }

    /** A filter as most are: for requests, not for asynchronous dispatches, and with something for its thread. */
    @Component
    static final class Guard implements Filter {
        private static final ThreadLocal<String> NAME = new ThreadLocal<>();

        @Override
        public void doFilter(ServletRequest in, ServletResponse out, FilterChain chain)
                throws IOException, ServletException {
            String name = ((HttpServletRequest) in).getHeader("x-name");
            if (name == null && ((HttpServletRequest) in).getRequestURI().startsWith("/guarded")) {
                ((HttpServletResponse) out).setStatus(401);
                return;
            }
            NAME.set(name);
            try {
                chain.doFilter(in, out);
            } finally {
                NAME.remove();
            }
        }
    }

    /** A filter that Spring runs once for a request, and not for its asynchronous dispatches. */
    @Component
    static final class Once extends OncePerRequestFilter {
        @Override
        protected void doFilterInternal(HttpServletRequest request, HttpServletResponse response, FilterChain chain)
                throws ServletException, IOException {
            Integer before = (Integer) request.getAttribute("seen");
            request.setAttribute("seen", before == null ? 1 : before + 1);
            chain.doFilter(request, response);
        }
    }

    @PostMapping("/guarded")
    String guarded(@RequestBody String body, HttpServletRequest request) {
        return Guard.NAME.get() + " sent " + body + " in a " + request.getDispatcherType() + ", seen "
                + request.getAttribute("seen");
    }

    /** How many handlers of the slow path hold a thread. */
    int threads() {
        return threads.get();
    }

    @GetMapping("/slow")
    String slow() throws InterruptedException {
        threads.incrementAndGet();
        slow.pass();
        threads.decrementAndGet();
        return "slow";
    }

    @GetMapping("/logged")
    String logged() {
        return MDC.get(LogContext.CLASS) + " " + MDC.get(LogContext.WAIT_MS);
    }

    @GetMapping("/fast")
    String fast() {
        return "fast";
    }

    @GetMapping("/stuck")
    String stuck() throws InterruptedException {
        stuck.pass();
        return "stuck";
    }

    @GetMapping("/large")
    byte[] large() {
        return new byte[1 << 20];
    }

    @GetMapping("/throws")
    String fails() {
        throw new IllegalStateException("a handler that fails");
    }

    @GetMapping("/async")
    Callable<String> async() {
        return () -> "async";
    }

    @GetMapping("/asyncThrows")
    Callable<String> asyncThrows() {
        return () -> {
            throw new IllegalStateException("a handler that fails later");
        };
    }

    @GetMapping("/asyncTimesOut")
    DeferredResult<String> asyncTimesOut() {
        // Not at once: in Jetty 12.1 a time-out that comes while the handler still returns is lost, without any filter, too.
        return new DeferredResult<>(500L);
    }

    @GetMapping("/pending")
    DeferredResult<String> pending() {
        DeferredResult<String> result = new DeferredResult<>(0L);
        pending.complete(result);
        return result;
    }

    @GetMapping("/missing/{id}")
    void missing(@PathVariable("id") String id, HttpServletResponse response) throws Exception {
        response.sendError(404, id);
    }

    @GetMapping("/echo")
    String echo(HttpServletRequest r) {
        return r.getHeader("x-pf-path") + " " + r.getHeader("x-pf-deadline") + " " + r.getHeader("x-pf-visits");
    }

    @GetMapping("/calls")
    String calls(HttpServletRequest r) {
        return get(r, "/echo");
    }

    @GetMapping("/gated")
    String gated(HttpServletRequest r) throws InterruptedException {
        slow.pass();
        return getThroughAnother(r, "/again");
    }

    @GetMapping("/calling")
    String calling(HttpServletRequest r) throws InterruptedException {
        slow.pass();
        return get(r, "/fast");
    }

    @GetMapping("/circle")
    String circle(HttpServletRequest r) {
        return get(r, "/circle");
    }

    @GetMapping("/again")
    String again(HttpServletRequest r) {
        // What is sent on counts this visit.
        long depth = Serving.here().orElseThrow().onward().depth("shop") - 1;
        return depth < ROUNDS ? getThroughAnother(r, "/again") : "again";
    }

    @GetMapping("/refusing")
    void refusing(HttpServletResponse response) throws Exception {
        response.setStatus(503);
        response.setHeader("x-pf-shed", "late");
    }

    @GetMapping("/callsShed")
    String callsShed(HttpServletRequest r) {
        return get(r, "/refusing");
    }

    @GetMapping("/reactive")
    String reactive(HttpServletRequest r) {
        WebClient c = webClients.clone().baseUrl("http://127.0.0.1:" + r.getLocalPort()).build();
        String echoed = c.get().uri("/echo").retrieve().bodyToMono(String.class).block();
        if (!echoed.endsWith(" shop*1") || Serving.here().isEmpty()) return "lost: " + echoed;
        try {
            return c.get().uri("/refusing").retrieve().bodyToMono(String.class).block();
        } catch (ShedDownstreamException e) {
            return e.reason();
        }
    }
}
