// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.spring;

import jakarta.servlet.http.HttpServletRequest;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import org.springframework.http.server.PathContainer;
import org.springframework.web.util.ServletRequestPathUtils;
import org.springframework.web.util.pattern.PathPattern;
import org.springframework.web.util.pattern.PathPatternParser;

/** Keys from the table that the operator gives. */
final class RouteKeys implements RequestKeys {
    private record Route(PathPattern pattern, String key) {}

    private final List<Route> routes = new ArrayList<>();
    private final RequestKeys others;

    RouteKeys(Map<String, String> table, RequestKeys others) {
        table.forEach((pattern, key) -> routes.add(new Route(PathPatternParser.defaultInstance.parse(pattern), key)));
        this.others = others;
    }

    @Override
    public String key(HttpServletRequest request) {
        PathContainer path = path(request);
        for (Route r : routes) if (r.pattern.matches(path)) return r.key;
        return others.key(request);
    }

    /** Does what needs a request's path parsed, which Spring's servlet does later. */
    static <T> T withPath(HttpServletRequest request, Supplier<T> what) {
        boolean parsed = ServletRequestPathUtils.hasParsedRequestPath(request);
        if (!parsed) ServletRequestPathUtils.parseAndCache(request);
        try {
            return what.get();
        } finally {
            if (!parsed) ServletRequestPathUtils.clearParsedRequestPath(request);
        }
    }

    static PathContainer path(HttpServletRequest request) {
        return PathContainer.parsePath(
                request.getRequestURI().substring(request.getContextPath().length()));
    }
}
