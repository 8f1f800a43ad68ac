// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.spring;

import org.apache.catalina.valves.ValveBase;
import org.eclipse.jetty.ee10.servlet.ServletContextHandler;
import org.eclipse.jetty.ee10.servlet.ServletContextRequest;
import org.eclipse.jetty.server.Request;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.web.client.RestClientCustomizer;
import org.springframework.boot.web.client.RestTemplateCustomizer;
import org.springframework.boot.web.context.WebServerApplicationContext;
import org.springframework.boot.web.embedded.jetty.ConfigurableJettyWebServerFactory;
import org.springframework.boot.web.embedded.tomcat.ConfigurableTomcatWebServerFactory;
import org.springframework.boot.web.reactive.function.client.WebClientCustomizer;
import org.springframework.boot.web.server.WebServerFactoryCustomizer;
import org.springframework.context.ApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.web.client.RestClient;
import org.springframework.web.reactive.function.client.WebClient;

/** What has other names in Spring Boot 4, whose starter has a class like this. All else is common to both. */
final class Boot {
    /** This starter. */
    static final String STARTER = "temper-pathfence-spring-boot-3-starter";

    private Boot() {}

    /** Not so in tests without a server (MockMvc). */
    static boolean hasServer(ApplicationContext context) {
        return context instanceof WebServerApplicationContext;
    }

    /** Tomcat. */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnClass({ValveBase.class, ConfigurableTomcatWebServerFactory.class})
    static class InTomcat {
        @Bean
        WebServerFactoryCustomizer<ConfigurableTomcatWebServerFactory> pathfenceTomcat(Admission admission) {
            return factory -> factory.addEngineValves(new FenceValve(admission));
        }
    }

    /** Jetty. */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnClass({ServletContextHandler.class, ConfigurableJettyWebServerFactory.class})
    static class InJetty {
        @Bean
        WebServerFactoryCustomizer<ConfigurableJettyWebServerFactory> pathfenceJetty(Admission admission) {
            return factory -> factory.addServerCustomizers(server -> server.getDescendants(ServletContextHandler.class)
                    .forEach(servlets -> servlets.insertHandler(new FenceHandler(admission, request -> {
                        ServletContextRequest servlet = Request.as(request, ServletContextRequest.class);
                        if (servlet == null) return null;
                        return new FenceHandler.Servlet(servlet.getServletApiRequest(), servlet.getHttpServletResponse());
                    }))));
        }
    }

    /** RestClient. Boot 3 has its customizer where the client itself is missing. */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnClass({RestClientCustomizer.class, RestClient.class})
    static class RestClients {
        @Bean
        RestClientCustomizer pathfenceRestClient(Outgoing outgoing) {
            return b -> b.requestInterceptor(new RestClientFence(outgoing));
        }
    }

    /** WebClient. The same. */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnClass({WebClientCustomizer.class, WebClient.class})
    static class WebClients {
        @Bean
        WebClientCustomizer pathfenceWebClient(Outgoing outgoing) {
            return b -> b.filter(new WebClientFence(outgoing));
        }
    }

    /** RestTemplate's builder. */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnClass(RestTemplateCustomizer.class)
    static class BuiltRestTemplates {
        @Bean
        RestTemplateCustomizer pathfenceRestTemplate(Outgoing outgoing) {
            return template -> RestTemplateFence.seen(template, outgoing);
        }
    }
}
