// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.spring;

import org.apache.catalina.startup.Tomcat;
import org.apache.catalina.valves.rewrite.RewriteValve;
import org.springframework.beans.factory.BeanFactory;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.boot.jetty.servlet.JettyServletWebServerFactory;
import org.springframework.boot.restclient.RestTemplateBuilder;
import org.springframework.boot.tomcat.TomcatWebServer;
import org.springframework.boot.tomcat.servlet.TomcatServletWebServerFactory;
import org.springframework.boot.web.server.servlet.ServletWebServerFactory;
import org.springframework.boot.web.server.servlet.context.ServletWebServerApplicationContext;
import org.springframework.context.ApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.web.client.RestTemplate;

/** The servers, and a builder, whose names are others in Spring Boot 3: the tests of its starter have a class like this. */
@Configuration(proxyBeanMethods = false)
class Servers {
    @Bean
    static ServletWebServerFactory server(
            @Value("${test.server}") String server,
            @Value("${test.async-timeout:0}") long asyncTimeout,
            ObjectProvider<Shop.Synchronous> synchronous,
            ObjectProvider<RewriteValve> rewrite) {
        if (server.equals("jetty")) return new JettyServletWebServerFactory();
        TomcatServletWebServerFactory tomcat = new TomcatServletWebServerFactory();
        synchronous.ifAvailable(tomcat::addEngineValves);
        rewrite.ifAvailable(tomcat::addContextValves);
        if (asyncTimeout > 0) tomcat.addConnectorCustomizers(c -> c.setAsyncTimeout(asyncTimeout));
        return tomcat;
    }

    static Tomcat tomcat(ApplicationContext context) {
        return ((TomcatWebServer) ((ServletWebServerApplicationContext) context).getWebServer()).getTomcat();
    }

    /** By Boot's builder. */
    static RestTemplate built(BeanFactory beans) {
        return beans.getBean(RestTemplateBuilder.class).build();
    }
}
