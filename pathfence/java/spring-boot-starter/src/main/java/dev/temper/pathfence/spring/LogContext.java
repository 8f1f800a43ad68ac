// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.spring;

import jakarta.servlet.Filter;
import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.http.HttpServletRequest;
import java.io.IOException;
import java.util.concurrent.TimeUnit;
import org.slf4j.MDC;

/** Lets each line that a request logs say its class, and how long it has waited for a worker. */
final class LogContext implements Filter {
    static final String CLASS = "pathfence.class";
    static final String WAIT_MS = "pathfence.wait_ms";

    @Override
    public void doFilter(ServletRequest in, ServletResponse out, FilterChain chain)
            throws IOException, ServletException {
        FencedRequest r = Admission.of((HttpServletRequest) in);
        if (r == null) {
            chain.doFilter(in, out);
            return;
        }
        try (MDC.MDCCloseable name = MDC.putCloseable(CLASS, r.className());
                MDC.MDCCloseable wait = MDC.putCloseable(WAIT_MS, Long.toString(TimeUnit.NANOSECONDS.toMillis(r.waited())))) {
            chain.doFilter(in, out);
        }
    }
}
