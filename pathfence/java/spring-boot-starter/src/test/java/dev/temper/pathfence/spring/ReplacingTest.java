// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.spring;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.spy;
import static org.mockito.Mockito.verify;

import com.zaxxer.hikari.HikariDataSource;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import javax.sql.DataSource;
import org.apache.hc.client5.http.impl.classic.CloseableHttpClient;
import org.apache.hc.client5.http.impl.classic.CloseableHttpResponse;
import org.apache.hc.client5.http.impl.classic.HttpClients;
import org.apache.hc.core5.http.ClassicHttpRequest;
import org.apache.hc.core5.http.HttpHost;
import org.apache.hc.core5.http.protocol.HttpContext;
import org.apache.hc.core5.io.CloseMode;
import org.h2.jdbcx.JdbcDataSource;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;
import org.springframework.http.HttpMethod;
import org.springframework.http.client.ClientHttpRequest;
import org.springframework.http.client.ClientHttpRequestFactory;
import org.springframework.http.client.HttpComponentsClientHttpRequestFactory;
import org.springframework.http.client.JdkClientHttpRequestFactory;
import org.springframework.http.client.SimpleClientHttpRequestFactory;
import org.springframework.jdbc.datasource.DriverManagerDataSource;
import org.springframework.mock.http.client.MockClientHttpRequest;
import org.springframework.test.util.AopTestUtils;
import org.springframework.web.client.RestTemplate;

/** What something else takes the place of, and what stays: whoever asks for a bean by its class gets it as before. */
class ReplacingTest {
    private static final Edges EDGES = new Edges(Map.of());
    private static final Outgoing OUTGOING = new Outgoing(EDGES, new Peers(List.of()), new Within());

    /** Whose connection does not come by way of a proxy. */
    static class Final extends DriverManagerDataSource {
        @Override
        public final String getUrl() {
            return "jdbc:h2:mem:final";
        }
    }

    static class OwnApache extends CloseableHttpClient {
        @Override
        protected CloseableHttpResponse doExecute(HttpHost target, ClassicHttpRequest request, HttpContext context)
                throws IOException {
            throw new IOException();
        }

        @Override
        public void close() {}

        @Override
        public void close(CloseMode mode) {}
    }

    private static DynamicTest stays(String what, Object before, Object after) {
        return DynamicTest.dynamicTest(what, () -> assertSame(before, after));
    }

    @TestFactory
    Stream<DynamicTest> whatCannotBeExtendedStays() {
        DataSource last = new JdbcDataSource();
        DataSource method = new Final();
        CloseableHttpClient apache = new OwnApache();
        HttpClient jdk = new SeenHttpClient(HttpClient.newHttpClient(), EDGES); // a class that is not the JDK's
        return Stream.of(
                stays("a final data source", last, SeenDataSource.of(last, "a")),
                stays("a final method", method, SeenDataSource.of(method, "a")),
                stays("a client class of one's own, Apache's", apache, SeenApacheClient.seen(apache, EDGES)),
                stays("a client class of one's own, the JDK's", jdk, SeenHttpClient.seen(jdk, EDGES)));
    }

    @Test
    void othersAreReplacedByTheirKind() {
        DataSource pool = new HikariDataSource();
        assertEquals(HikariDataSource.class, SeenDataSource.of(pool, "a").getClass().getSuperclass());
        CloseableHttpClient apache = HttpClients.createDefault();
        assertNotSame(apache, SeenApacheClient.seen(apache, EDGES));
        HttpClient jdk = HttpClient.newHttpClient();
        assertNotSame(jdk, SeenHttpClient.seen(jdk, EDGES));
    }

    /** Says what was set of it. */
    static class OwnRequests extends SimpleClientHttpRequestFactory {
        int timeout;

        @Override
        public void setReadTimeout(int milliseconds) {
            timeout = milliseconds;
        }
    }

    /** Whoever sets a timeout of a template later asks for its factory by its class. */
    @Test
    void aTemplatesFactoryIsOfItsOwnClass() throws Exception {
        OwnRequests own = new OwnRequests();
        RestTemplate template = new RestTemplate(own);
        template.setInterceptors(List.of((request, body, execution) -> execution.execute(request, body)));
        RestTemplateFence.seen(template, OUTGOING);
        template.setInterceptors(List.of());
        ((OwnRequests) template.getRequestFactory()).setReadTimeout(7);
        assertEquals(7, own.timeout);
        for (ClientHttpRequestFactory requests : List.of(
                new SimpleClientHttpRequestFactory(), new JdkClientHttpRequestFactory(), new HttpComponentsClientHttpRequestFactory())) {
            RestTemplate seen = RestTemplateFence.seen(new RestTemplate(requests), OUTGOING);
            assertEquals(requests.getClass(), seen.getRequestFactory().getClass().getSuperclass());
            assertEquals(RestTemplateFence.class, requestOf(seen).getClass().getEnclosingClass(), requests.getClass().getName());
        }
        RestTemplate lambda = RestTemplateFence.seen(new RestTemplate((to, method) -> new MockClientHttpRequest(method, to)), OUTGOING);
        assertEquals(RestTemplateFence.class, requestOf(lambda).getClass().getEnclosingClass());
    }

    private static ClientHttpRequest requestOf(RestTemplate template) throws IOException {
        return template.getRequestFactory().createRequest(URI.create("http://127.0.0.1:1/"), HttpMethod.POST);
    }

    @Test
    void mocksStayMocks() throws Exception {
        Replacing<DataSource> sources = new Replacing<>(DataSource.class, SeenDataSource::of);
        for (DataSource mocked : new DataSource[] {mock(DataSource.class), mock(HikariDataSource.class), spy(new HikariDataSource())})
            assertSame(mocked, sources.postProcessAfterInitialization(mocked, "a"));
    }

    /** A spy is put around what has taken a bean's place. */
    @Test
    void whatTakesItsPlaceCanBeSpiedOn() throws Exception {
        DataSource spied = spy(SeenDataSource.of(new DriverManagerDataSource("jdbc:h2:mem:spied"), "a"));
        spied.getConnection().close();
        verify(spied).getConnection();
        Object known = AopTestUtils.getUltimateTargetObject(spied);
        assertSame(spied, known, "Spring's tests look for a mock there");
    }

    /** As where beans are allowed to need each other. */
    @Test
    void whoNeedsItEarlyHasWhatTakesItsPlace() {
        Replacing<DataSource> sources = new Replacing<>(DataSource.class, SeenDataSource::of);
        DataSource made = new DriverManagerDataSource("jdbc:h2:mem:early");
        assertNotSame(made, sources.getEarlyBeanReference(made, "a"));
        assertSame(made, sources.postProcessAfterInitialization(made, "a"), "Spring takes what it gave out");
        assertNotSame(made, sources.postProcessAfterInitialization(made, "b"), "another bean");
    }
}
