// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.spring;

import jakarta.servlet.ServletException;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;

/**
 * How a refused request is answered. A bean of this type answers instead of the starter, whose answer has no body. It runs
 * on a thread of the server's without a permit, in the very moment in which there is too much to do, so it must be cheap.
 *
 * <pre>{@code
 * @Bean
 * RefusedResponse refusedResponse() {
 *     return (request, response, refusal) -> {
 *         response.setContentType("application/problem+json");
 *         response.getWriter().write("{\"title\":\"Too busy\",\"status\":503}");
 *     };
 * }
 * }</pre>
 */
@FunctionalInterface
public interface RefusedResponse {
    /**
     * Writes the answer. Status 503 and the headers {@code x-pf-shed} and {@code retry-after} are set, and those of CORS;
     * each can be set anew. {@code response.sendError(503)} has the application's error pages answer.
     *
     * @param request the request
     * @param response its response, not committed yet
     * @param refusal why
     * @throws IOException if the client is gone
     * @throws ServletException as a servlet would
     */
    void write(HttpServletRequest request, HttpServletResponse response, Refusal refusal)
            throws IOException, ServletException;

    /**
     * Why a request is refused.
     *
     * @param reason {@code expired}, {@code late}, {@code full}, {@code depth} or {@code closed}, or a peer's
     * @param className the class of its path
     * @param retryAfter when a retry may help, in seconds
     */
    record Refusal(String reason, String className, long retryAfter) {}
}
