// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.bench;

import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletException;
import jakarta.servlet.http.HttpFilter;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.util.Optional;

/** An admission before the front end's controllers: it is asked on the server's thread, as such filters are. */
final class AdmissionFilter extends HttpFilter {
    private static final long serialVersionUID = 1;

    private final transient Admission admission;

    AdmissionFilter(ShopOptions options) {
        admission = Admission.named(options.admission(), options.workers(), ShopFront.PATHS);
    }

    @Override
    protected void doFilter(HttpServletRequest request, HttpServletResponse response, FilterChain chain)
            throws IOException, ServletException {
        String path = request.getRequestURI().substring(1);
        if (!ShopFront.PATHS.contains(path)) {
            response.setStatus(HttpServletResponse.SC_NOT_FOUND);
            return;
        }
        Optional<Runnable> ended = admission.enter(path);
        if (ended.isEmpty()) {
            // As the fence refuses, so that clients need not tell arms apart.
            response.setStatus(HttpServletResponse.SC_SERVICE_UNAVAILABLE);
            response.setHeader("x-pf-shed", "full");
            return;
        }
        try {
            chain.doFilter(request, response);
        } finally {
            ended.get().run();
        }
    }
}
