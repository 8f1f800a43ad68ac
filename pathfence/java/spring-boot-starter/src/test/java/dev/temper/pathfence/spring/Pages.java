// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.spring;

import io.micrometer.common.KeyValues;
import org.springframework.boot.autoconfigure.condition.ConditionalOnProperty;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.http.server.observation.DefaultServerRequestObservationConvention;
import org.springframework.http.server.observation.ServerRequestObservationContext;
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

    @GetMapping(path = "/annotated/chosen", params = "one")
    @PathKey("one")
    String one() {
        return "one";
    }

    @GetMapping(path = "/annotated/chosen", params = "two")
    @PathKey("two")
    String two() {
        return "two";
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

    /** It reads what there is of a response, as it may: Spring's filter always has one. */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnProperty("test.convention")
    static class Convention extends DefaultServerRequestObservationConvention {
        @Override
        public KeyValues getLowCardinalityKeyValues(ServerRequestObservationContext context) {
            return super.getLowCardinalityKeyValues(context).and("own", String.valueOf(context.getResponse().isCommitted()));
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
