// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.spring;

import io.micrometer.core.instrument.binder.grpc.GrpcClientObservationContext;
import io.micrometer.observation.transport.SenderContext;
import java.net.URI;
import java.net.URISyntaxException;
import java.util.List;
import java.util.Optional;
import java.util.function.Function;
import org.springframework.http.HttpRequest;
import org.springframework.util.ClassUtils;
import org.springframework.web.reactive.function.client.ClientRequest;

/** The address that an observed call goes to, of clients that have one. */
final class Carriers {
    private static final List<Known> CARRIERS = List.of(
            new Known("org.springframework.http.HttpRequest", c -> ((HttpRequest) c).getURI()),
            new Known(
                    "org.springframework.web.reactive.function.client.ClientRequest$Builder",
                    c -> ((ClientRequest.Builder) c).build().url()),
            new Known("java.net.http.HttpRequest$Builder", c -> ((java.net.http.HttpRequest.Builder) c).build().uri()),
            new Known("feign.Request", c -> URI.create(((feign.Request) c).url())),
            new Known("okhttp3.Request$Builder", c -> ((okhttp3.Request.Builder) c).build().url().uri()),
            new Known("org.apache.hc.core5.http.HttpRequest", c -> apache((org.apache.hc.core5.http.HttpRequest) c)));
    private static final Known GRPC = new Known(
            "io.micrometer.core.instrument.binder.grpc.GrpcClientObservationContext",
            c -> URI.create("grpc://" + ((GrpcClientObservationContext) c).getAuthority()));

    private Carriers() {}

    /** A type that need not be there, by its name; what reads it is not run then. */
    private record Known(Class<?> type, Function<Object, URI> address) {
        Known(String name, Function<Object, URI> address) {
            this(
                    ClassUtils.isPresent(name, Carriers.class.getClassLoader())
                            ? ClassUtils.resolveClassName(name, Carriers.class.getClassLoader())
                            : null,
                    address);
        }

        Optional<URI> of(Object carrier) {
            return type == null || !type.isInstance(carrier) ? Optional.empty() : Optional.ofNullable(address.apply(carrier));
        }
    }

    private static URI apache(org.apache.hc.core5.http.HttpRequest request) {
        try {
            return request.getUri();
        } catch (URISyntaxException e) {
            throw new IllegalArgumentException(e);
        }
    }

    /**
     * Where a call goes.
     *
     * @param call as it starts
     * @return nothing where it does not say, or says it in a way that is not known
     */
    static Optional<URI> address(SenderContext<?> call) {
        try {
            return CARRIERS.stream()
                    .flatMap(k -> k.of(call.getCarrier()).stream())
                    .findFirst()
                    .or(() -> GRPC.of(call));
        } catch (IllegalArgumentException | IllegalStateException e) {
            return Optional.empty(); // no address; the client will say so itself
        }
    }
}
