// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.spring;

import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Timer;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;

/** How long requests wait for a worker, by class and by what came of it. */
final class WaitTimers implements FenceListener {
    /** By class and outcome: as many as there are classes, times the reasons of a refusal and one. */
    private record Of(String name, String outcome) {}

    private final Supplier<MeterRegistry> registry;
    private final Map<Of, Timer> timers = new ConcurrentHashMap<>();

    /** @param registry asked for at the first request */
    WaitTimers(Supplier<MeterRegistry> registry) {
        this.registry = registry;
    }

    @Override
    public void granted(FencedRequest r, HttpServletRequest request, HttpServletResponse response) {
        record(r, "granted");
    }

    @Override
    public void refused(FencedRequest r, HttpServletRequest request, HttpServletResponse response) {
        record(r, r.refused());
    }

    private void record(FencedRequest r, String outcome) {
        timers.computeIfAbsent(new Of(r.className(), outcome), this::timer).record(r.waited(), TimeUnit.NANOSECONDS);
    }

    private Timer timer(Of of) {
        return Timer.builder("pathfence.wait")
                .tag("class", of.name)
                .tag("outcome", of.outcome)
                .description("what requests wait for a worker until they are granted one, or refused")
                .register(registry.get());
    }
}
