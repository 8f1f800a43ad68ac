// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.spring;

import dev.temper.pathfence.ClassState;
import dev.temper.pathfence.Fence;
import io.micrometer.core.instrument.FunctionCounter;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.binder.MeterBinder;
import java.util.function.ToDoubleFunction;

/**
 * The state of the fence as meters, and of each class, with the tag {@code class}, from the moment that there is such a
 * class.
 */
final class FenceMetrics implements MeterBinder {
    private static final double NANOS = 1e9;

    private final Fence fence;

    FenceMetrics(Fence fence) {
        this.fence = fence;
    }

    @Override
    public void bindTo(MeterRegistry registry) {
        whole(registry, "workers", "the pool", f -> f.config().workers());
        whole(registry, "off", "1 if the fence is switched off: the plain pool", f -> f.config().off() ? 1 : 0);
        whole(
                registry,
                "config.error",
                "1 if the watched configuration is not in force",
                f -> f.watchError().isPresent() ? 1 : 0);
        fence.onClass(name -> bind(registry, name));
    }

    private void bind(MeterRegistry registry, String name) {
        gauge(registry, name, "limit", "the most that may be in flight", ClassState::limit);
        gauge(registry, name, "reserve", "workers that it has a right to", ClassState::reserve);
        gauge(registry, name, "in.flight", "workers that it has", ClassState::inFlight);
        gauge(registry, name, "queued", "requests that wait", ClassState::queued);
        gauge(registry, name, "lent", "workers beyond its reserve", ClassState::lent);
        gauge(registry, name, "knee", "smallest concurrency on the plateau of goodput", ClassState::knee);
        gauge(registry, name, "hold", "seconds that a request keeps its worker", s -> s.hold() / NANOS);
        counter(registry, name, "granted", "requests that were given a worker", ClassState::granted);
        counter(registry, name, "shed", "requests that were refused", ClassState::shed);
        counter(registry, name, "missed", "requests that ended after their deadline", ClassState::missed);
        counter(registry, name, "failed", "requests that failed", ClassState::failed);
    }

    private void whole(MeterRegistry registry, String what, String about, ToDoubleFunction<Fence> of) {
        Gauge.builder("pathfence." + what, fence, of)
                .description(about)
                .strongReference(true)
                .register(registry);
    }

    private double value(String name, ToDoubleFunction<ClassState> of) {
        return fence.state(name).map(of::applyAsDouble).orElse(0.0);
    }

    private void gauge(
            MeterRegistry registry, String name, String what, String about, ToDoubleFunction<ClassState> of) {
        Gauge.builder("pathfence." + what, this, m -> m.value(name, of))
                .tag("class", name)
                .description(about)
                .strongReference(true)
                .register(registry);
    }

    private void counter(
            MeterRegistry registry, String name, String what, String about, ToDoubleFunction<ClassState> of) {
        FunctionCounter.builder("pathfence." + what, this, m -> m.value(name, of))
                .tag("class", name)
                .description(about)
                .register(registry);
    }
}
