// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.spring;

import dev.temper.pathfence.ClassConfig;
import dev.temper.pathfence.Config;
import java.nio.file.Path;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.springframework.boot.context.properties.ConfigurationProperties;
import org.springframework.boot.context.properties.bind.DefaultValue;
import org.springframework.boot.context.properties.bind.Name;

/**
 * What {@code pathfence.*} sets. Zero and null mean the default; {@link Config} has bounds and meanings. A name that is not
 * here is an error: it would be a setting that is not in force.
 *
 * @param enabled whether there is a fence
 * @param config a JSON file with the configuration, watched and reloaded; then workers to classes are not read from here
 * @param workers permits; the default is three quarters of the server's threads
 * @param window what is measured is measured over such a time
 * @param target deadline of requests that carry none
 * @param grace nothing is shed as late before
 * @param queueMax the longest queue of a class
 * @param unknownBuckets classes for keys that are not known
 * @param classes the classes that have a name
 * @param off whether the fence starts switched off, if there is no file
 * @param offInYaml the same: YAML reads a bare {@code off}, as a key, as false
 * @param service this service's name in what travels with a request; empty: re-entry is not seen
 * @param trusted whether peers may choose keys and depths
 * @param routes from a path pattern, as in {@code /orders/**}, to a key; the first that matches counts
 * @param exempt path patterns that are not fenced, besides those of the actuator's endpoints
 * @param edges from a downstream's host and port, or host, to the name of its edge; default is host and port
 * @param peers the hosts, with or without a port, that clients send on what travels with a request to; {@code *.shop.svc}
 *     is every host below {@code shop.svc}
 * @param mdc whether each line that a request logs has its class and wait: pathfence.class and pathfence.wait_ms in the MDC
 * @param outgoing which clients are seen, besides RestClient and WebClient
 */
@ConfigurationProperties(prefix = "pathfence", ignoreUnknownFields = false)
public record PathfenceProperties(
        @DefaultValue("true") boolean enabled,
        Path config,
        long workers,
        Duration window,
        Duration target,
        Duration grace,
        long queueMax,
        long unknownBuckets,
        List<PathClass> classes,
        boolean off,
        @Name("false") boolean offInYaml,
        @DefaultValue("") String service,
        boolean trusted,
        Map<String, String> routes,
        List<String> exempt,
        Map<String, String> edges,
        List<String> peers,
        boolean mdc,
        @DefaultValue Outgoing outgoing) {

    /** Fills in empty lists, and refuses patterns that match nothing. */
    public PathfenceProperties {
        classes = classes == null ? List.of() : List.copyOf(classes);
        routes = routes == null ? Map.of() : new LinkedHashMap<>(routes);
        exempt = exempt == null ? List.of() : List.copyOf(exempt);
        edges = edges == null ? Map.of() : Map.copyOf(edges);
        peers = peers == null ? List.of() : List.copyOf(peers);
        for (String peer : peers) {
            if (peer.matches("(\\*\\.)?[^*/\\s]+")) continue;
            throw new IllegalArgumentException("pathfence.peers: \"" + peer + "\" is no host; write orders.shop.svc,"
                    + " orders.shop.svc:8080, or *.shop.svc for all below it");
        }
        for (String pattern : routes.keySet()) {
            if (pattern.startsWith("/")) continue;
            throw new IllegalArgumentException("pathfence.routes: \"" + pattern + "\" is no path pattern, it does not begin"
                    + " with a slash; where slashes are lost, write it in brackets: \"[/items/**]\"");
        }
    }

    /**
     * Which clients are seen, besides RestClient and WebClient.
     *
     * @param observations all that make Micrometer observations of kind CLIENT
     * @param jdbc beans of type DataSource
     * @param restTemplate RestTemplate, where it is a bean or comes from Boot's builder
     * @param feign clients of Spring Cloud OpenFeign
     * @param httpClient beans of type java.net.http.HttpClient
     * @param okHttp beans of type OkHttpClient
     * @param apache beans of type CloseableHttpClient of Apache HttpClient 5
     * @param unseen whether the log tells, once for a path, where its requests wait in a call that nobody sees
     */
    public record Outgoing(
            @DefaultValue("true") boolean observations,
            @DefaultValue("true") boolean jdbc,
            @DefaultValue("true") boolean restTemplate,
            @DefaultValue("true") boolean feign,
            @DefaultValue("true") boolean httpClient,
            @DefaultValue("true") boolean okHttp,
            @DefaultValue("true") boolean apache,
            @DefaultValue("true") boolean unseen) {}

    /**
     * A class that has a name.
     *
     * @param name its name
     * @param keys the paths that belong to it
     * @param weight its share of the workers among all active classes
     * @param target deadline of requests that carry none
     * @param limit where the limit starts
     * @param hold what a request usually keeps its worker for
     */
    public record PathClass(
            String name, List<String> keys, long weight, Duration target, long limit, Duration hold) {
        private ClassConfig config() {
            return new ClassConfig(name, keys == null ? List.of() : keys, weight, nanos(target), limit, nanos(hold));
        }
    }

    private static long nanos(Duration d) {
        return d == null ? 0 : d.toNanos();
    }

    /**
     * The configuration that a fence starts with.
     *
     * @param defaultWorkers the workers, where nobody says how many
     * @return the file's, or what the properties say
     */
    public Config config(long defaultWorkers) {
        if (config != null) return Config.load(config);
        Config.Builder b = Config.builder(workers == 0 ? defaultWorkers : workers)
                .window(nanos(window))
                .target(nanos(target))
                .grace(nanos(grace))
                .queueMax(queueMax)
                .unknownBuckets(unknownBuckets)
                .off(off || offInYaml);
        for (PathClass k : classes) b.add(k.config());
        return b.build().checked();
    }
}
