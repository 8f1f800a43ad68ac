// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.spring;

import java.util.function.BiFunction;
import org.springframework.beans.factory.config.BeanPostProcessor;
import org.springframework.core.PriorityOrdered;

/**
 * Puts something in the place of each bean of a type, before other processors see it: they may put around it what calls
 * only later.
 *
 * @param <T> the type
 */
final class Replacing<T> implements BeanPostProcessor, PriorityOrdered {
    private final Class<T> type;
    private final BiFunction<T, String, Object> by;

    /**
     * @param type the type
     * @param by makes what takes its place, from it and its name
     */
    Replacing(Class<T> type, BiFunction<T, String, Object> by) {
        this.type = type;
        this.by = by;
    }

    @Override
    public Object postProcessAfterInitialization(Object bean, String name) {
        return type.isInstance(bean) ? by.apply(type.cast(bean), name) : bean;
    }

    @Override
    public int getOrder() {
        return HIGHEST_PRECEDENCE;
    }
}
