// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.spring;

import java.lang.reflect.Method;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.BiFunction;
import org.springframework.beans.factory.config.SmartInstantiationAwareBeanPostProcessor;
import org.springframework.core.PriorityOrdered;
import org.springframework.util.ClassUtils;
import org.springframework.util.ReflectionUtils;

/**
 * Puts something in the place of each bean of a type, before other processors see it: they may put around it what calls
 * only later. Mocks stay what they are: tests ask them what was called.
 *
 * @param <T> the type
 */
final class Replacing<T> implements SmartInstantiationAwareBeanPostProcessor, PriorityOrdered {
    private final Class<T> type;
    private final BiFunction<T, String, Object> by;
    /** Beans that others had to have before they were made: one takes their place already. */
    private final Map<String, Object> early = new ConcurrentHashMap<>();

    /**
     * @param type the type
     * @param by makes what takes its place, from it and its name
     */
    Replacing(Class<T> type, BiFunction<T, String, Object> by) {
        this.type = type;
        this.by = by;
    }

    @Override
    public Object getEarlyBeanReference(Object bean, String name) {
        early.put(name, bean);
        return replaced(bean, name);
    }

    @Override
    public Object postProcessAfterInitialization(Object bean, String name) {
        return early.remove(name) == bean ? bean : replaced(bean, name);
    }

    private Object replaced(Object bean, String name) {
        return type.isInstance(bean) && !isMock(bean) ? by.apply(type.cast(bean), name) : bean;
    }

    /** Mockito's may be of the very class that they stand for. */
    private static boolean isMock(Object bean) {
        ClassLoader loader = bean.getClass().getClassLoader();
        if (!ClassUtils.isPresent("org.mockito.Mockito", loader)) return false;
        Class<?> mockito = ClassUtils.resolveClassName("org.mockito.Mockito", loader);
        Method details = ReflectionUtils.findMethod(mockito, "mockingDetails", Object.class);
        Object of = ReflectionUtils.invokeMethod(details, null, bean);
        Method is = ReflectionUtils.findMethod(details.getReturnType(), "isMock");
        return (Boolean) ReflectionUtils.invokeMethod(is, of);
    }

    @Override
    public int getOrder() {
        return HIGHEST_PRECEDENCE;
    }
}
