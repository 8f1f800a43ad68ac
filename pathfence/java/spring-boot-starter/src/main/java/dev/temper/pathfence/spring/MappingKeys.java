// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.spring;

import dev.temper.pathfence.ConfigException;
import dev.temper.pathfence.internal.Names;
import jakarta.servlet.http.HttpServletRequest;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.core.annotation.AnnotatedElementUtils;
import org.springframework.http.server.PathContainer;
import org.springframework.util.function.SingletonSupplier;
import org.springframework.web.method.HandlerMethod;
import org.springframework.web.servlet.HandlerMapping;
import org.springframework.web.servlet.function.support.RouterFunctionMapping;
import org.springframework.web.servlet.handler.AbstractUrlHandlerMapping;
import org.springframework.web.servlet.mvc.condition.PathPatternsRequestCondition;
import org.springframework.web.servlet.mvc.method.RequestMappingInfo;
import org.springframework.web.servlet.mvc.method.RequestMappingInfoHandlerMapping;
import org.springframework.web.util.ServletRequestPathUtils;
import org.springframework.web.util.pattern.PathPattern;

/**
 * Keys from Spring MVC: what a {@link PathKey} says, or method and pattern, {@code GET:/orders/:id}. Controllers have
 * patterns, functional routes and static files.
 * There are as many as there are patterns, whatever clients ask for.
 */
final class MappingKeys implements RequestKeys {
    private static final int LONGEST = 64;
    private static final Set<String> METHODS = Set.of("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE");

    /** From a request, whose path has been parsed, to what serves it, or null. */
    @FunctionalInterface
    interface Patterns {
        Found of(HttpServletRequest request);
    }

    /**
     * What serves a request.
     *
     * @param pattern of its path
     * @param key what an annotation says; or null
     */
    record Found(PathPattern pattern, String key) {}

    private final ObjectProvider<HandlerMapping> mappings;
    private final Supplier<List<Patterns>> patterns;
    private final Map<HandlerMethod, Optional<String>> annotated = new ConcurrentHashMap<>();

    MappingKeys(ObjectProvider<HandlerMapping> mappings) {
        this.mappings = mappings;
        patterns = SingletonSupplier.of(
                () -> mappings.orderedStream().map(this::patterns).toList());
    }

    /**
     * Looks at all annotations once.
     *
     * @throws ConfigException if one is no key
     */
    void check() {
        mappings.stream()
                .filter(RequestMappingInfoHandlerMapping.class::isInstance)
                .flatMap(m -> ((RequestMappingInfoHandlerMapping) m).getHandlerMethods().values().stream())
                .forEach(MappingKeys::check);
    }

    private static void check(HandlerMethod handler) {
        String key = annotated(handler);
        if (key != null && !Names.valid(key))
            throw new ConfigException("@PathKey(\"" + key + "\") of " + handler.getShortLogMessage()
                    + ": a key is 1 to 64 of a-z A-Z 0-9 . _ / : + - ~");
    }

    private static String annotated(HandlerMethod handler) {
        PathKey key = handler.getMethodAnnotation(PathKey.class);
        if (key == null) key = AnnotatedElementUtils.findMergedAnnotation(handler.getBeanType(), PathKey.class);
        return key == null ? null : key.value();
    }

    private Patterns patterns(HandlerMapping mapping) {
        if (mapping instanceof RequestMappingInfoHandlerMapping m) return request -> controller(m, request);
        if (mapping instanceof RouterFunctionMapping m) return new Routes(m.getRouterFunction());
        if (mapping instanceof AbstractUrlHandlerMapping m) return request -> url(m, request);
        return request -> null;
    }

    @Override
    public String key(HttpServletRequest request) {
        Found found = find(request);
        if (found == null) return "";
        return found.key == null ? named(method(request) + ":" + found.pattern.getPatternString()) : found.key;
    }

    /** The pattern that serves a request, or null. */
    String pattern(HttpServletRequest request) {
        Found found = find(request);
        return found == null ? null : found.pattern.getPatternString();
    }

    private Found find(HttpServletRequest request) {
        return RouteKeys.withPath(request, () -> {
            for (Patterns p : patterns.get()) {
                Found found = p.of(request);
                if (found != null) return found;
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

    private Found controller(RequestMappingInfoHandlerMapping mapping, HttpServletRequest request) {
        PathPattern best = null;
        List<HandlerMethod> handlers = new ArrayList<>(); // several, if parameters or headers choose
        for (Map.Entry<RequestMappingInfo, HandlerMethod> e : mapping.getHandlerMethods().entrySet()) {
            PathPatternsRequestCondition match = match(e.getKey(), request);
            if (match == null) continue;
            if (isBetter(match.getFirstPattern(), best)) handlers.clear();
            else if (!match.getFirstPattern().equals(best)) continue;
            best = match.getFirstPattern();
            handlers.add(e.getValue());
        }
        return best == null ? null : new Found(best, annotated(handlers));
    }

    /** What all of them say; nothing if they do not agree. */
    private String annotated(List<HandlerMethod> handlers) {
        Optional<String> key = known(handlers.get(0));
        return handlers.stream().allMatch(h -> known(h).equals(key)) ? key.orElse(null) : null;
    }

    /** Spring looks through a class for an annotation, and this is asked with each request. */
    private Optional<String> known(HandlerMethod handler) {
        return annotated.computeIfAbsent(handler, h -> Optional.ofNullable(annotated(h)));
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

    private static Found url(AbstractUrlHandlerMapping mapping, HttpServletRequest request) {
        PathContainer path = path(request);
        PathPattern best = null;
        for (PathPattern p : mapping.getPathPatternHandlerMap().keySet())
            if (p.matches(path) && isBetter(p, best)) best = p;
        return best == null ? null : new Found(best, null);
    }

    private static boolean isBetter(PathPattern a, PathPattern best) {
        return best == null || PathPattern.SPECIFICITY_COMPARATOR.compare(a, best) < 0;
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
            else if (Names.valid(String.valueOf(c))) out.append(c);
        }
        if (out.length() <= LONGEST) return out.toString();
        String hash = Integer.toHexString(pattern.hashCode());
        return out.substring(0, LONGEST - 1 - hash.length()) + "~" + hash;
    }
}
