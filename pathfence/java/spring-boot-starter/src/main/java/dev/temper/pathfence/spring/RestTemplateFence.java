// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.spring;

import dev.temper.pathfence.Serving;
import java.io.IOException;
import java.io.OutputStream;
import java.net.URI;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.aopalliance.intercept.MethodInvocation;
import org.springframework.http.HttpHeaders;
import org.springframework.http.HttpMethod;
import org.springframework.http.StreamingHttpOutputMessage;
import org.springframework.http.client.ClientHttpRequest;
import org.springframework.http.client.ClientHttpRequestFactory;
import org.springframework.http.client.ClientHttpRequestInitializer;
import org.springframework.http.client.ClientHttpRequestInterceptor;
import org.springframework.http.client.ClientHttpResponse;
import org.springframework.web.client.RestTemplate;

/**
 * {@link Outgoing} for RestTemplate, without an interceptor: with one, Spring keeps each request's body in memory. What is
 * called is told by the name that the application uses, before interceptors change it, as a load balancer's does; what is
 * sent on goes with the request that they have left.
 */
final class RestTemplateFence implements ClientHttpRequestInitializer, ClientHttpRequestFactory {
    private final ClientHttpRequestFactory requests;
    private final Outgoing outgoing;

    private RestTemplateFence(ClientHttpRequestFactory requests, Outgoing outgoing) {
        this.requests = requests;
        this.outgoing = outgoing;
    }

    /** Sees to a template, once. */
    static RestTemplate seen(RestTemplate template, Outgoing outgoing) {
        List<ClientHttpRequestInitializer> initializers = new ArrayList<>(template.getClientHttpRequestInitializers());
        if (initializers.stream().anyMatch(RestTemplateFence.class::isInstance)) return template;
        // With interceptors, the factory that it says is the one that calls them.
        List<ClientHttpRequestInterceptor> interceptors = List.copyOf(template.getInterceptors());
        template.setInterceptors(List.of());
        ClientHttpRequestFactory requests = template.getRequestFactory();
        RestTemplateFence fence = new RestTemplateFence(requests, outgoing);
        // Whoever sets a timeout later asks for the factory by its class.
        template.setRequestFactory(StandIn.of(requests, fence::called).orElse(fence));
        template.setInterceptors(interceptors);
        initializers.add(0, fence);
        template.setClientHttpRequestInitializers(initializers);
        return template;
    }

    @Override
    public void initialize(ClientHttpRequest request) {
        outgoing.calls(request.getURI());
    }

    @Override
    public ClientHttpRequest createRequest(URI to, HttpMethod method) throws IOException {
        return seen(requests.createRequest(to, method));
    }

    /** A call of what stands in for the factory. */
    private Object called(MethodInvocation call) throws Throwable {
        Object result = call.proceed();
        return call.getMethod().getName().equals("createRequest") ? seen((ClientHttpRequest) result) : result;
    }

    private ClientHttpRequest seen(ClientHttpRequest made) {
        return made instanceof StreamingHttpOutputMessage ? new StreamingRequest(made, outgoing) : new Request(made, outgoing);
    }

    /** As it was made, but for what happens when it is sent. */
    private static class Request implements ClientHttpRequest {
        final ClientHttpRequest made;
        private final Outgoing outgoing;

        Request(ClientHttpRequest made, Outgoing outgoing) {
            this.made = made;
            this.outgoing = outgoing;
        }

        @Override
        public ClientHttpResponse execute() throws IOException {
            try (Serving.Scope told = Serving.within()) {
                return RestClientFence.answered(outgoing, this, made::execute);
            }
        }

        @Override
        public OutputStream getBody() throws IOException {
            return made.getBody();
        }

        @Override
        public HttpMethod getMethod() {
            return made.getMethod();
        }

        @Override
        public URI getURI() {
            return made.getURI();
        }

        @Override
        public Map<String, Object> getAttributes() {
            return made.getAttributes();
        }

        @Override
        public HttpHeaders getHeaders() {
            return made.getHeaders();
        }
    }

    /** Whoever writes its body does so when it is sent, if it can. */
    private static final class StreamingRequest extends Request implements StreamingHttpOutputMessage {
        StreamingRequest(ClientHttpRequest made, Outgoing outgoing) {
            super(made, outgoing);
        }

        @Override
        public void setBody(Body body) {
            ((StreamingHttpOutputMessage) made).setBody(body);
        }
    }
}
