// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.spring;

import org.springframework.boot.autoconfigure.condition.ConditionalOnProperty;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.servlet.config.annotation.CorsRegistry;
import org.springframework.web.servlet.config.annotation.WebMvcConfigurer;

/** What pages of another origin read, and how an application may word refusals. */
@RestController
class Pages {
    @GetMapping("/pages/{id}")
    String page(@PathVariable("id") String id) {
        return "page " + id;
    }

    @GetMapping("/annotated/own")
    @PathKey("own")
    String own() {
        return "own";
    }

    /** All are one path, but what says something else. */
    @RestController
    @PathKey("annotated")
    static class Annotated {
        @GetMapping("/annotated/a")
        String a() {
            return "a";
        }

        @PostMapping("/annotated/{any}")
        String post() {
            return "post";
        }

        @GetMapping("/annotated/{any}")
        @PathKey("any")
        String any() {
            return "any";
        }
    }

    @RestController
    @PathKey("no key")
    @ConditionalOnProperty("test.wrong-key")
    static class Wrong {
        @GetMapping("/wrong")
        String wrong() {
            return "wrong";
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class Origins implements WebMvcConfigurer {
        @Override
        public void addCorsMappings(CorsRegistry registry) {
            registry.addMapping("/pages/*").allowedOrigins("http://shop.example");
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class Wording {
        @Bean
        @ConditionalOnProperty(name = "test.refused", havingValue = "write")
        RefusedResponse written() {
            return (request, response, refusal) -> {
                response.setStatus(429);
                response.setContentType("application/json");
                response.getWriter().write("{\"why\":\"" + refusal.reason() + "\"}");
            };
        }

        @Bean
        @ConditionalOnProperty(name = "test.refused", havingValue = "send")
        RefusedResponse sent() {
            return (request, response, refusal) -> response.sendError(503);
        }
    }
}
