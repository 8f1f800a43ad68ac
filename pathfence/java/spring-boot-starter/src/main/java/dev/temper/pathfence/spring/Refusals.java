// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.spring;

import jakarta.servlet.ServletException;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.util.List;
import java.util.Objects;
import java.util.function.Supplier;
import org.springframework.http.HttpHeaders;
import org.springframework.web.cors.CorsConfiguration;
import org.springframework.web.cors.CorsConfigurationSource;
import org.springframework.web.cors.DefaultCorsProcessor;

/** Answers refused requests. */
final class Refusals {
    /** What answers if the application has nothing of its own. */
    static final RefusedResponse EMPTY = (request, response, refusal) -> {
        response.setContentLength(0);
        response.flushBuffer();
    };

    private final RefusedResponse response;
    private final Supplier<List<CorsConfigurationSource>> cors;

    /**
     * @param response writes the answer
     * @param cors what the application lets pages of other origins read; asked for at the first of their requests
     */
    Refusals(RefusedResponse response, Supplier<List<CorsConfigurationSource>> cors) {
        this.response = response;
        this.cors = cors;
    }

    /** Answers one, for a reason that may be a peer's. */
    void write(FencedRequest r, String reason, HttpServletRequest in, HttpServletResponse out)
            throws IOException, ServletException {
        long retryAfter = r.retryAfter();
        out.setStatus(HttpServletResponse.SC_SERVICE_UNAVAILABLE);
        out.setHeader(Outgoing.SHED, reason);
        out.setHeader(HttpHeaders.RETRY_AFTER, Long.toString(retryAfter));
        letOriginRead(in, out);
        response.write(in, out, new RefusedResponse.Refusal(reason, r.className(), retryAfter));
    }

    /** Without these headers a browser hides the status from the page: all that it is told is that something failed. */
    private void letOriginRead(HttpServletRequest in, HttpServletResponse out) throws IOException {
        String origin = in.getHeader(HttpHeaders.ORIGIN);
        if (origin == null || out.containsHeader(HttpHeaders.ACCESS_CONTROL_ALLOW_ORIGIN)) return;
        CorsConfiguration allowed = RouteKeys.withPath(in, () -> configuration(in));
        // The processor would answer 403 where the origin is not allowed.
        if (allowed != null && allowed.checkOrigin(origin) != null) new DefaultCorsProcessor().processRequest(allowed, in, out);
    }

    private CorsConfiguration configuration(HttpServletRequest in) {
        return cors.get().stream()
                .map(source -> source.getCorsConfiguration(in))
                .filter(Objects::nonNull)
                .findFirst()
                .orElse(null);
    }
}
