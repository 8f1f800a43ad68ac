// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.spring;

import jakarta.servlet.http.HttpServletRequest;
import java.util.List;
import java.util.Set;
import java.util.function.Supplier;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.http.server.PathContainer;
import org.springframework.util.function.SingletonSupplier;
import org.springframework.web.servlet.HandlerMapping;
import org.springframework.web.servlet.function.support.RouterFunctionMapping;
import org.springframework.web.servlet.handler.AbstractUrlHandlerMapping;
import org.springframework.web.servlet.mvc.condition.PathPatternsRequestCondition;
import org.springframework.web.servlet.mvc.method.RequestMappingInfo;
import org.springframework.web.servlet.mvc.method.RequestMappingInfoHandlerMapping;
import org.springframework.web.util.ServletRequestPathUtils;
import org.springframework.web.util.pattern.PathPattern;

/**
 * Keys from the patterns of Spring MVC: {@code GET:/orders/:id}. Controllers have them, functional routes and static files.
 * There are as many as there are patterns, whatever clients ask for.
 */
final class MappingKeys implements RequestKeys {
    private static final int LONGEST = 64;
    private static final Set<String> METHODS = Set.of("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE");

    /** From a request, whose path has been parsed, to the pattern that serves it, or null. */
    @FunctionalInterface
    interface Patterns {
        PathPattern of(HttpServletRequest request);
    }

    private final Supplier<List<Patterns>> patterns;

    MappingKeys(ObjectProvider<HandlerMapping> mappings) {
        patterns = SingletonSupplier.of(
                () -> mappings.orderedStream().map(MappingKeys::patterns).toList());
    }

    private static Patterns patterns(HandlerMapping mapping) {
        if (mapping instanceof RequestMappingInfoHandlerMapping m) return request -> controller(m, request);
        if (mapping instanceof RouterFunctionMapping m) return new Routes(m.getRouterFunction());
        if (mapping instanceof AbstractUrlHandlerMapping m) return request -> url(m, request);
        return request -> null;
    }

    @Override
    public String key(HttpServletRequest request) {
        String pattern = pattern(request);
        return pattern == null ? "" : named(method(request) + ":" + pattern);
    }

    /** The pattern that serves a request, or null. */
    String pattern(HttpServletRequest request) {
        return RouteKeys.withPath(request, () -> {
            for (Patterns p : patterns.get()) {
                PathPattern pattern = p.of(request);
                if (pattern != null) return pattern.getPatternString();
            }
            return null;
        });
    }

    /** HEAD is served as GET is. Clients may make up methods. */
    private static String method(HttpServletRequest request) {
        String method = request.getMethod();
        if (method.equals("HEAD")) return "GET";
        return METHODS.contains(method) ? method : "ANY";
    }

    private static PathPattern controller(RequestMappingInfoHandlerMapping mapping, HttpServletRequest request) {
        PathPattern best = null;
        for (RequestMappingInfo info : mapping.getHandlerMethods().keySet()) {
            PathPatternsRequestCondition match = match(info, request);
            if (match != null) best = better(match.getFirstPattern(), best);
        }
        return best;
    }

    /** By method and path alone: whoever looks at parameters reads the body, before filters have said what is in it. */
    private static PathPatternsRequestCondition match(RequestMappingInfo info, HttpServletRequest request) {
        PathPatternsRequestCondition paths = info.getPathPatternsCondition();
        if (paths == null) return null;
        // Spring itself answers OPTIONS for whatever has the path.
        boolean served = request.getMethod().equals("OPTIONS")
                || info.getMethodsCondition().getMatchingCondition(request) != null;
        return served ? paths.getMatchingCondition(request) : null;
    }

    private static PathPattern url(AbstractUrlHandlerMapping mapping, HttpServletRequest request) {
        PathContainer path = path(request);
        PathPattern best = null;
        for (PathPattern p : mapping.getPathPatternHandlerMap().keySet()) if (p.matches(path)) best = better(p, best);
        return best;
    }

    private static PathPattern better(PathPattern a, PathPattern best) {
        return best == null || PathPattern.SPECIFICITY_COMPARATOR.compare(a, best) < 0 ? a : best;
    }

    static PathContainer path(HttpServletRequest request) {
        return ServletRequestPathUtils.getParsedRequestPath(request).pathWithinApplication();
    }

    /** Makes a valid name of a pattern; one that is too long keeps its start and a hash. */
    static String named(String pattern) {
        StringBuilder out = new StringBuilder();
        for (char c : pattern.toCharArray()) {
            if (c == '{') out.append(':');
            else if (c == '*') out.append('+');
            else if (dev.temper.pathfence.internal.Names.valid(String.valueOf(c))) out.append(c);
        }
        if (out.length() <= LONGEST) return out.toString();
        String hash = Integer.toHexString(pattern.hashCode());
        return out.substring(0, LONGEST - 1 - hash.length()) + "~" + hash;
    }
}
