// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.spring;

import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.Optional;
import org.aopalliance.intercept.MethodInterceptor;
import org.springframework.aop.framework.AopConfigException;
import org.springframework.aop.framework.ProxyFactory;

/** What stands in for an object, of its own class: the application may ask for it by that. */
final class StandIn {
    private StandIn() {}

    /**
     * Makes one.
     *
     * @param object what it stands in for, and calls
     * @param advice has each call
     * @return none where the class cannot be extended
     */
    @SuppressWarnings("unchecked")
    static <T> Optional<T> of(T object, MethodInterceptor advice) {
        if (cannotBeExtended(object.getClass())) return Optional.empty();
        ProxyFactory proxy = new ProxyFactory(object);
        proxy.setProxyTargetClass(true);
        proxy.setOpaque(true); // or a spy around it would be looked through, and found to be none
        proxy.addAdvice(advice);
        try {
            return Optional.of((T) proxy.getProxy());
        } catch (AopConfigException e) {
            return Optional.empty();
        }
    }

    /** A method that is final would run on the proxy, which has none of the object's state. */
    private static boolean cannotBeExtended(Class<?> type) {
        if (Modifier.isFinal(type.getModifiers())) return true;
        int own = Modifier.PRIVATE | Modifier.STATIC;
        for (Class<?> c = type; c != null && c != Object.class; c = c.getSuperclass())
            for (Method m : c.getDeclaredMethods())
                if (Modifier.isFinal(m.getModifiers()) && (m.getModifiers() & own) == 0 && !m.isSynthetic()) return true;
        return false;
    }
}
