// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.bench;

import java.net.http.HttpClient;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.springframework.http.client.JdkClientHttpRequestFactory;
import org.springframework.web.client.RestClient;

/**
 * Calls the services below, with the builder that the starter has put its interceptor into where there is a fence. A call
 * waits until it is known where the service is.
 */
final class ShopClient {
    private final Map<String, CompletableFuture<Integer>> ports = new HashMap<>(); // does not change once this is made
    private final RestClient client;

    ShopClient(ShopOptions options, RestClient.Builder builder) {
        for (String service : options.downstreams()) ports.put(service, new CompletableFuture<>());
        // Without an attempt to speak HTTP/2 in each request, which no service here does.
        HttpClient http = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
        client = builder.requestFactory(new JdkClientHttpRequestFactory(http)).build();
    }

    void locate(String service, int port) {
        ports.get(service).complete(port);
    }

    void call(String service, long workMicros) {
        client.post()
                .uri("http://127.0.0.1:{port}/{service}?work_us={work}", ports.get(service).join(), service, workMicros)
                .retrieve()
                .toBodilessEntity();
    }
}
