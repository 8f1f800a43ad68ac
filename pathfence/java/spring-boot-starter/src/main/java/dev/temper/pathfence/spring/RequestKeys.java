// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.spring;

import jakarta.servlet.http.HttpServletRequest;

/** From a request to the key of its path, where the request itself says none that counts. */
@FunctionalInterface
public interface RequestKeys {
    /**
     * The key.
     *
     * @param request the request, before any work has started on it
     * @return a valid key, or empty where it is not known; never a raw address
     */
    String key(HttpServletRequest request);
}
