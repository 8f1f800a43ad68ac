// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence;

import java.util.List;

/**
 * A class that the operator names. Zero means the default.
 *
 * @param name a valid name that does not start with {@code ~}
 * @param keys the paths that belong to it
 * @param weight 1 to 1000, default 100: its share of the workers among all active classes
 * @param target nanoseconds, 1 ms to 600 s, default the configuration's: deadline of requests that carry none
 * @param limit 0 to 4096: where the limit starts, from a profile; default the number of workers
 * @param hold nanoseconds, 0 to 600 s: what a request usually keeps its worker for, from a profile
 */
public record ClassConfig(String name, List<String> keys, long weight, long target, long limit, long hold) {
    /** Copies the keys. */
    public ClassConfig {
        keys = List.copyOf(keys);
    }

    /**
     * A class with the default weight and target, and no profile.
     *
     * @param name a valid name that does not start with {@code ~}
     * @param keys the paths that belong to it
     * @return the class
     */
    public static ClassConfig of(String name, String... keys) {
        return new ClassConfig(name, List.of(keys), 0, 0, 0, 0);
    }
}
