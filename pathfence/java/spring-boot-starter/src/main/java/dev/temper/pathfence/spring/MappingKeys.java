// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.spring;

import jakarta.servlet.http.HttpServletRequest;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.web.servlet.mvc.condition.PathPatternsRequestCondition;
import org.springframework.web.servlet.mvc.method.RequestMappingInfo;
import org.springframework.web.servlet.mvc.method.annotation.RequestMappingHandlerMapping;
import org.springframework.web.util.ServletRequestPathUtils;
import org.springframework.web.util.pattern.PathPattern;

/**
 * Keys from the patterns of Spring MVC's controllers: {@code GET:/orders/:id}. There are as many as there are handler
 * methods, whatever clients ask for.
 */
final class MappingKeys implements RequestKeys {
    private static final int LONGEST = 64;

    private final ObjectProvider<RequestMappingHandlerMapping> mappings;

    MappingKeys(ObjectProvider<RequestMappingHandlerMapping> mappings) {
        this.mappings = mappings;
    }

    @Override
    public String key(HttpServletRequest request) {
        boolean parsed = ServletRequestPathUtils.hasParsedRequestPath(request);
        if (!parsed) ServletRequestPathUtils.parseAndCache(request);
        try {
            return mappings.orderedStream()
                    .map(m -> key(m, request))
                    .filter(k -> !k.isEmpty())
                    .findFirst()
                    .orElse("");
        } finally {
            if (!parsed) ServletRequestPathUtils.clearParsedRequestPath(request);
        }
    }

    private static String key(RequestMappingHandlerMapping mapping, HttpServletRequest request) {
        PathPattern best = null;
        for (RequestMappingInfo info : mapping.getHandlerMethods().keySet()) {
            PathPatternsRequestCondition match = match(info, request);
            if (match == null) continue;
            PathPattern first = match.getFirstPattern();
            if (best == null || PathPattern.SPECIFICITY_COMPARATOR.compare(first, best) < 0) best = first;
        }
        return best == null ? "" : named(request.getMethod() + ":" + best.getPatternString());
    }

    /** By method and path alone: whoever looks at parameters reads the body, before filters have said what is in it. */
    private static PathPatternsRequestCondition match(RequestMappingInfo info, HttpServletRequest request) {
        PathPatternsRequestCondition paths = info.getPathPatternsCondition();
        if (paths == null || info.getMethodsCondition().getMatchingCondition(request) == null) return null;
        return paths.getMatchingCondition(request);
    }

    /** Makes a valid name of a pattern; one that is too long keeps its start and a hash. */
    static String named(String pattern) {
        StringBuilder out = new StringBuilder();
        for (char c : pattern.toCharArray()) {
            if (c == '{') out.append(':');
            else if (c == '*') out.append('+');
            else if (dev.temper.pathfence.Names.valid(String.valueOf(c))) out.append(c);
        }
        if (out.length() <= LONGEST) return out.toString();
        String hash = Integer.toHexString(pattern.hashCode());
        return out.substring(0, LONGEST - 1 - hash.length()) + "~" + hash;
    }
}
