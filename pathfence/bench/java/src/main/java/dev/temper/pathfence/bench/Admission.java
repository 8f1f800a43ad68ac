// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.bench;

import com.netflix.concurrency.limits.Limit;
import com.netflix.concurrency.limits.Limiter;
import com.netflix.concurrency.limits.limit.Gradient2Limit;
import com.netflix.concurrency.limits.limit.VegasLimit;
import com.netflix.concurrency.limits.limiter.AbstractPartitionedLimiter;
import io.github.resilience4j.bulkhead.Bulkhead;
import io.github.resilience4j.bulkhead.BulkheadConfig;
import java.util.Collection;
import java.util.Map;
import java.util.Optional;
import java.util.function.Function;
import java.util.stream.Collectors;

/** Lets requests in as they come, or refuses them: what Java services without a fence have. */
interface Admission {
    /** What has to be run when the request has ended; empty where it is refused. */
    Optional<Runnable> enter(String path);

    /** The admission of a name, for a service with so many workers. */
    static Admission named(String name, int workers, Collection<String> paths) {
        return switch (name) {
            case "" -> path -> Optional.of(() -> {});
            case "vegas" -> partitioned(VegasLimit.newDefault(), paths);
            case "gradient2" -> partitioned(Gradient2Limit.newDefault(), paths);
            case "bulkhead" -> bulkhead(workers / paths.size(), paths);
            default -> throw new IllegalArgumentException("no admission is named " + name);
        };
    }

    /** Netflix's limiter, with the library's own settings and an equal partition for each path. */
    private static Admission partitioned(Limit limit, Collection<String> paths) {
        Partitioned builder = new Partitioned().limit(limit).partitionResolver(path -> path);
        for (String path : paths) builder.partition(path, 1.0 / paths.size());
        Limiter<String> limiter = builder.build();
        return path -> limiter.acquire(path).map(listener -> listener::onSuccess);
    }

    /** Resilience4j's bulkhead, one for each path, with an equal part of the workers; it refuses what finds it full. */
    private static Admission bulkhead(int permits, Collection<String> paths) {
        BulkheadConfig config = BulkheadConfig.custom().maxConcurrentCalls(permits).build();
        Map<String, Bulkhead> bulkheads =
                paths.stream().collect(Collectors.toMap(Function.identity(), path -> Bulkhead.of(path, config)));
        return path -> {
            Bulkhead b = bulkheads.get(path);
            return b.tryAcquirePermission() ? Optional.of(b::onComplete) : Optional.empty();
        };
    }

    /** The library's builder, which is meant to be extended. */
    final class Partitioned extends AbstractPartitionedLimiter.Builder<Partitioned, String> {
        @Override
        protected Partitioned self() {
            return this;
        }
    }
}
