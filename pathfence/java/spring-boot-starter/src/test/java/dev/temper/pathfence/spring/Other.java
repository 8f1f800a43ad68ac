// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.spring;

import jakarta.servlet.ServletRequestEvent;
import jakarta.servlet.ServletRequestListener;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.catalina.LifecycleException;
import org.apache.catalina.valves.rewrite.RewriteValve;
import org.springframework.beans.factory.annotation.Qualifier;
import org.springframework.boot.autoconfigure.condition.ConditionalOnProperty;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.http.HttpMethod;
import org.springframework.web.servlet.function.RequestPredicates;
import org.springframework.web.servlet.function.RouterFunction;
import org.springframework.web.servlet.function.RouterFunctions;
import org.springframework.web.servlet.function.ServerResponse;
import org.springframework.web.servlet.mvc.method.annotation.RequestMappingHandlerMapping;

/** What else applications have. */
@RestController
class Other {
    /** How long the file is that is sent. */
    static final int FILE = 100_000;

    @PostMapping(path = "/form", params = "mode=some")
    String some(@RequestParam("name") String name) {
        return "some " + name;
    }

    @PostMapping("/form")
    String any(@RequestParam("name") String name) {
        return "any " + name;
    }

    @GetMapping("/answers/{status}")
    void answers(@PathVariable("status") int status, HttpServletResponse response) {
        response.setStatus(status);
    }

    /** As the default servlet sends files. */
    @GetMapping("/file")
    void file(HttpServletRequest request, HttpServletResponse response) throws IOException {
        response.setContentLength(FILE);
        if (!Boolean.TRUE.equals(request.getAttribute("org.apache.tomcat.sendfile.support"))) {
            response.getOutputStream().write(new byte[FILE]);
            return;
        }
        Path file = Files.createTempFile("pathfence", ".file");
        file.toFile().deleteOnExit();
        Files.write(file, new byte[FILE]);
        request.setAttribute("org.apache.tomcat.sendfile.filename", file.toString());
        request.setAttribute("org.apache.tomcat.sendfile.start", 0L);
        request.setAttribute("org.apache.tomcat.sendfile.end", (long) FILE);
    }

    /** Counts requests as they come and go. */
    static final class Listening implements ServletRequestListener {
        final AtomicInteger came = new AtomicInteger();
        final AtomicInteger went = new AtomicInteger();

        @Override
        public void requestInitialized(ServletRequestEvent event) {
            came.incrementAndGet();
        }

        @Override
        public void requestDestroyed(ServletRequestEvent event) {
            went.incrementAndGet();
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class Beans {
        @Bean
        RouterFunction<ServerResponse> routes() {
            return RouterFunctions.route()
                    .route(RequestPredicates.methods(HttpMethod.GET, HttpMethod.POST).and(RequestPredicates.path("/routed/{id}")),
                            r -> ServerResponse.ok().body("routed " + r.pathVariable("id")))
                    .path("/nested", b -> b.nest(RequestPredicates.path("/deep"),
                            n -> n.GET("/{id}", r -> ServerResponse.ok().body("nested " + r.pathVariable("id")))))
                    .build();
        }

        @Bean
        Listening listening() {
            return new Listening();
        }

        @Bean
        @ConditionalOnProperty("test.keys")
        RequestKeys keys(@Qualifier("requestMappingHandlerMapping") RequestMappingHandlerMapping needsTheServer) {
            return request -> "own";
        }

        @Bean
        @ConditionalOnProperty("test.rewrite")
        RewriteValve rewrite() {
            return new RewriteValve() {
                @Override
                protected void startInternal() throws LifecycleException {
                    super.startInternal();
                    try {
                        setConfiguration("RewriteRule ^/old$ /fast");
                    } catch (Exception e) {
                        throw new LifecycleException(e);
                    }
                }
            };
        }
    }
}
