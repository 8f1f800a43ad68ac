// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence;

import java.util.Arrays;

/** How long the last requests of a class, or of a group, held their workers. */
final class Holds {
    private static final int KEPT = 31;

    private final long[] ring = new long[KEPT];
    private final long[] sorted = new long[KEPT];
    private int size;
    private int next;

    /** Adds one, and gives the lower median. */
    long add(long nanos) {
        ring[next] = nanos;
        next = (next + 1) % KEPT;
        size = Math.min(size + 1, KEPT);
        System.arraycopy(ring, 0, sorted, 0, size);
        Arrays.sort(sorted, 0, size);
        return sorted[(size - 1) / 2];
    }
}
