// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence;

import java.util.Arrays;

/** How long the last requests of a class, or of a group, held their workers; in order of size, too, since each asks. */
final class Holds {
    private static final int KEPT = 31;

    private final long[] ring = new long[KEPT];
    private final long[] sorted = new long[KEPT];
    private int size;
    private int next;

    /** Adds one, and gives the lower median. */
    long add(long nanos) {
        if (size == KEPT) remove(ring[next]);
        ring[next] = nanos;
        next = (next + 1) % KEPT;
        insert(nanos);
        return sorted[(size - 1) / 2];
    }

    private void remove(long nanos) {
        int at = Arrays.binarySearch(sorted, 0, size, nanos);
        size--;
        System.arraycopy(sorted, at + 1, sorted, at, size - at);
    }

    private void insert(long nanos) {
        int found = Arrays.binarySearch(sorted, 0, size, nanos);
        int at = found < 0 ? -found - 1 : found;
        System.arraycopy(sorted, at, sorted, at + 1, size - at);
        sorted[at] = nanos;
        size++;
    }
}
