// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.spring;

import java.util.Objects;
import java.util.stream.Stream;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.web.cors.CorsConfigurationSource;
import org.springframework.web.servlet.HandlerMapping;
import org.springframework.web.servlet.handler.AbstractHandlerMapping;

/** What Spring MVC is told of other origins as a whole. What a single controller's annotation says is not in it. */
final class MvcCors {
    private final ObjectProvider<HandlerMapping> mappings;

    MvcCors(ObjectProvider<HandlerMapping> mappings) {
        this.mappings = mappings;
    }

    Stream<CorsConfigurationSource> sources() {
        return mappings.orderedStream()
                .filter(AbstractHandlerMapping.class::isInstance)
                .map(m -> ((AbstractHandlerMapping) m).getCorsConfigurationSource())
                .filter(Objects::nonNull);
    }
}
