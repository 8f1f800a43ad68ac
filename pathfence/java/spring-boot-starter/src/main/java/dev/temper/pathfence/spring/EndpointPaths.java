// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.spring;

import java.util.ArrayList;
import java.util.List;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.actuate.endpoint.ExposableEndpoint;
import org.springframework.boot.actuate.endpoint.web.PathMappedEndpoint;
import org.springframework.boot.actuate.endpoint.web.PathMappedEndpoints;
import org.springframework.boot.actuate.endpoint.web.WebServerNamespace;

/**
 * Where the actuator's endpoints are on this server, wherever the application has put them. A probe that is refused has
 * the service restarted.
 */
final class EndpointPaths {
    private final ObjectProvider<PathMappedEndpoints> endpoints;
    private final String servlet;

    /**
     * @param endpoints the application's
     * @param servlet the path of Spring's servlet, below which they are
     */
    EndpointPaths(ObjectProvider<PathMappedEndpoints> endpoints, String servlet) {
        this.endpoints = endpoints;
        this.servlet = servlet.endsWith("/") ? servlet.substring(0, servlet.length() - 1) : servlet;
    }

    /** What matches them, and nothing else. */
    List<String> patterns() {
        List<String> paths = new ArrayList<>();
        endpoints.ifAvailable(all -> {
            String base = all.getBasePath();
            if (base.length() > 1) paths.add(base); // else they are among the application's own
            else paths.addAll(all.getAllPaths());
            for (PathMappedEndpoint e : all)
                if (e instanceof ExposableEndpoint<?> known)
                    paths.addAll(all.getAdditionalPaths(WebServerNamespace.SERVER, known.getEndpointId()));
        });
        return paths.stream().map(path -> servlet + path + "/**").toList();
    }
}
