// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.spring;

import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;

/** Hears what becomes of requests at the fence, on threads of the server's. What it throws is told, and changes nothing. */
interface FenceListener {
    /** It has to wait. */
    default void waits(FencedRequest r, HttpServletRequest request, HttpServletResponse response) {}

    /** The application's filters are next. */
    default void granted(FencedRequest r, HttpServletRequest request, HttpServletResponse response) {}

    /** The response says so, and is not sent yet. */
    default void refused(FencedRequest r, HttpServletRequest request, HttpServletResponse response) {}
}
