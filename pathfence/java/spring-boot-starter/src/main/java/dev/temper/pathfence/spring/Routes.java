// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.spring;

import jakarta.servlet.http.HttpServletRequest;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.function.Function;
import org.springframework.core.io.Resource;
import org.springframework.http.HttpMethod;
import org.springframework.http.server.PathContainer;
import org.springframework.web.servlet.function.HandlerFunction;
import org.springframework.web.servlet.function.RequestPredicate;
import org.springframework.web.servlet.function.RequestPredicates;
import org.springframework.web.servlet.function.RouterFunction;
import org.springframework.web.servlet.function.RouterFunctions;
import org.springframework.web.servlet.function.ServerRequest;
import org.springframework.web.util.pattern.PathPattern;
import org.springframework.web.util.pattern.PathPatternParser;

/**
 * The patterns of functional routes, the first that matches method and path. What else a route asks of a request is not
 * looked at: it may read the body.
 */
final class Routes implements MappingKeys.Patterns {
    private record Route(PathPattern pattern, Set<HttpMethod> methods) {
        boolean serves(PathContainer path, HttpMethod method) {
            boolean asked = methods.isEmpty()
                    || methods.contains(method)
                    || method.equals(HttpMethod.HEAD) && methods.contains(HttpMethod.GET);
            return asked && pattern.matches(path);
        }
    }

    private final List<Route> routes = new ArrayList<>();

    /** @param router the application's, or null where it has none */
    Routes(RouterFunction<?> router) {
        if (router != null) router.accept(new Collector());
    }

    @Override
    public MappingKeys.Found of(HttpServletRequest request) {
        PathContainer path = MappingKeys.path(request);
        HttpMethod method = HttpMethod.valueOf(request.getMethod());
        for (Route r : routes) if (r.serves(path, method)) return new MappingKeys.Found(r.pattern, null);
        return null;
    }

    /** Walks through the routes; those below a path have it before their own. */
    private final class Collector implements RouterFunctions.Visitor {
        private final Deque<String> above = new ArrayDeque<>(List.of(""));

        @Override
        public void startNested(RequestPredicate predicate) {
            List<String> paths = new Asked(predicate).paths;
            above.push(above.peek() + (paths.size() == 1 ? paths.get(0) : ""));
        }

        @Override
        public void endNested(RequestPredicate predicate) {
            above.pop();
        }

        @Override
        public void route(RequestPredicate predicate, HandlerFunction<?> handler) {
            Asked asked = new Asked(predicate);
            for (String path : asked.paths)
                routes.add(new Route(PathPatternParser.defaultInstance.parse(above.peek() + path), asked.methods));
        }

        @Override
        public void resources(Function<ServerRequest, Optional<Resource>> lookup) {
            // It tells no pattern.
        }

        @Override
        public void attributes(Map<String, Object> attributes) {
            // Nothing of them is a pattern.
        }

        @Override
        public void unknown(RouterFunction<?> router) {
            // It tells no pattern.
        }
    }

    /** The paths and methods that a predicate names. */
    private static final class Asked implements RequestPredicates.Visitor {
        private final List<String> paths = new ArrayList<>();
        private final Set<HttpMethod> methods = new HashSet<>();
        private int negated;

        Asked(RequestPredicate predicate) {
            predicate.accept(this);
        }

        @Override
        public void method(Set<HttpMethod> named) {
            if (negated == 0) methods.addAll(named);
        }

        @Override
        public void path(String pattern) {
            if (negated == 0) paths.add(pattern);
        }

        @Override
        public void startNegate() {
            negated++;
        }

        @Override
        public void endNegate() {
            negated--;
        }

        @Override
        public void header(String name, String value) {}

        @Override
        public void param(String name, String value) {}

        @Override
        @SuppressWarnings("removal")
        public void pathExtension(String extension) {}

        // Spring 6 does not ask for it, so it overrides nothing there.
        public void version(String version) {}

        @Override
        public void startAnd() {}

        @Override
        public void and() {}

        @Override
        public void endAnd() {}

        @Override
        public void startOr() {}

        @Override
        public void or() {}

        @Override
        public void endOr() {}

        @Override
        public void unknown(RequestPredicate predicate) {}
    }
}
