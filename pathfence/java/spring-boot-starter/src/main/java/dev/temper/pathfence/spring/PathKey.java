// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.spring;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Inherited;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * The key of what a controller, or one of its methods, serves, in place of method and pattern. Endpoints with the same key
 * are one path to the fence: it learns of them together, and they are in the same class.
 *
 * <pre>{@code
 * @RestController
 * @PathKey("orders")
 * class Orders { ... }
 * }</pre>
 *
 * Where parameters or headers choose between methods with the same path, it counts if all of them have the same. A
 * method's goes before its controller's, and {@code pathfence.routes} before both.
 */
@Documented
@Inherited
@Retention(RetentionPolicy.RUNTIME)
@Target({ElementType.TYPE, ElementType.METHOD})
public @interface PathKey {
    /**
     * The key.
     *
     * @return 1 to 64 of {@code a-z A-Z 0-9 . _ / : + - ~}; with anything else the service does not start
     */
    String value();
}
