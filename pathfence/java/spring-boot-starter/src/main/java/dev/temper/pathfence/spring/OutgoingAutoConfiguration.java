// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.spring;

import feign.Capability;
import io.micrometer.observation.ObservationHandler;
import jakarta.servlet.DispatcherType;
import jakarta.servlet.Servlet;
import java.net.http.HttpClient;
import java.util.EnumSet;
import java.util.List;
import java.util.function.Supplier;
import javax.sql.DataSource;
import okhttp3.OkHttpClient;
import org.apache.hc.client5.http.impl.classic.CloseableHttpClient;
import org.springframework.beans.factory.BeanFactory;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.AutoConfigurationPackages;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnProperty;
import org.springframework.boot.autoconfigure.condition.ConditionalOnWebApplication;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.core.Ordered;
import org.springframework.util.function.SingletonSupplier;
import org.springframework.web.client.RestTemplate;

/**
 * Sees what requests call by clients other than RestClient and WebClient, unless {@code pathfence.outgoing.*} is false. An
 * address has the same edge whichever client calls it.
 */
@AutoConfiguration(after = PathfenceAutoConfiguration.class)
@ConditionalOnProperty(name = "pathfence.enabled", matchIfMissing = true)
public class OutgoingAutoConfiguration {
    /** For the container. */
    public OutgoingAutoConfiguration() {}

    /** What replaces beans is made before all others: it asks for properties when it needs them. */
    private static Supplier<Edges> edges(ObjectProvider<PathfenceProperties> properties) {
        return SingletonSupplier.of(() -> new Edges(properties.getObject().edges()));
    }

    /** Whatever makes observations. */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnClass(ObservationHandler.class)
    @ConditionalOnProperty(name = "pathfence.outgoing.observations", matchIfMissing = true)
    static class Observed {
        @Bean
        ClientObservations pathfenceClientObservations(PathfenceProperties properties) {
            return new ClientObservations(
                    new Edges(properties.edges()), !properties.outgoing().jdbc());
        }
    }

    /** Data sources. */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnClass(DataSource.class)
    @ConditionalOnProperty(name = "pathfence.outgoing.jdbc", matchIfMissing = true)
    static class Jdbc {
        @Bean
        static Replacing<DataSource> pathfenceDataSources() {
            return new Replacing<>(DataSource.class, SeenDataSource::of);
        }
    }

    /** RestTemplate, where it is a bean, or made by Boot's builder. */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnClass(RestTemplate.class)
    @ConditionalOnProperty(name = "pathfence.outgoing.rest-template", matchIfMissing = true)
    @Import(Boot.BuiltRestTemplates.class)
    static class RestTemplates {
        @Bean
        static Replacing<RestTemplate> pathfenceRestTemplates(ObjectProvider<Outgoing> outgoing) {
            return new Replacing<>(RestTemplate.class, (template, name) -> RestTemplateFence.seen(template, outgoing.getObject()));
        }
    }

    /** The JDK's client. */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnClass(HttpClient.class)
    @ConditionalOnProperty(name = "pathfence.outgoing.http-client", matchIfMissing = true)
    static class HttpClients {
        @Bean
        static Replacing<HttpClient> pathfenceHttpClients(ObjectProvider<PathfenceProperties> properties) {
            Supplier<Edges> edges = edges(properties);
            return new Replacing<>(HttpClient.class, (client, name) -> SeenHttpClient.seen(client, edges.get()));
        }
    }

    /** Apache HttpClient 5. */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnClass(CloseableHttpClient.class)
    @ConditionalOnProperty(name = "pathfence.outgoing.apache", matchIfMissing = true)
    static class Apache {
        @Bean
        static Replacing<CloseableHttpClient> pathfenceApacheClients(ObjectProvider<PathfenceProperties> properties) {
            Supplier<Edges> edges = edges(properties);
            return new Replacing<>(CloseableHttpClient.class, (client, name) -> SeenApacheClient.seen(client, edges.get()));
        }
    }

    /** OkHttp. */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnClass(OkHttpClient.class)
    @ConditionalOnProperty(name = "pathfence.outgoing.ok-http", matchIfMissing = true)
    static class OkHttp {
        @Bean
        static Replacing<OkHttpClient> pathfenceOkHttpClients(ObjectProvider<PathfenceProperties> properties) {
            Supplier<Edges> edges = edges(properties);
            return new Replacing<>(OkHttpClient.class, (client, name) -> OkHttpFence.seen(client, edges.get()));
        }
    }

    /** OpenFeign. */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnClass(Capability.class)
    @ConditionalOnProperty(name = "pathfence.outgoing.feign", matchIfMissing = true)
    static class Feign {
        @Bean
        FeignFence pathfenceFeign(PathfenceProperties properties) {
            return new FeignFence(new Edges(properties.edges()));
        }
    }

    /** What none of these sees. */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnWebApplication(type = ConditionalOnWebApplication.Type.SERVLET)
    @ConditionalOnClass({Servlet.class, FilterRegistrationBean.class})
    @ConditionalOnProperty(name = "pathfence.outgoing.unseen", matchIfMissing = true)
    static class Unseen {
        @Bean
        UnseenCalls pathfenceUnseenCalls(BeanFactory beans) {
            boolean known = AutoConfigurationPackages.has(beans);
            return new UnseenCalls(known ? AutoConfigurationPackages.get(beans) : List.of());
        }

        @Bean
        FilterRegistrationBean<UnseenCalls> pathfenceUnseen(UnseenCalls unseen) {
            FilterRegistrationBean<UnseenCalls> bean = new FilterRegistrationBean<>(unseen);
            bean.setDispatcherTypes(EnumSet.of(DispatcherType.REQUEST, DispatcherType.ASYNC));
            bean.setAsyncSupported(true);
            bean.setOrder(Ordered.HIGHEST_PRECEDENCE + 1); // after the fence's
            return bean;
        }
    }
}
