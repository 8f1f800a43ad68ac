// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence;

import java.util.ArrayDeque;
import java.util.List;
import java.util.Queue;

/**
 * Tells waiters what was decided, outside of the lock. A callback may end its request at once, which leads to further
 * decisions: the outermost call delivers those, so that a long queue makes no deep stack.
 */
final class Delivery {
    private static final ThreadLocal<Queue<Runnable>> PENDING = new ThreadLocal<>();

    private Delivery() {}

    /** Whether this thread is inside of a callback. */
    static boolean underWay() {
        return PENDING.get() != null;
    }

    /** Calls what never throws. */
    static void deliver(List<Runnable> calls) {
        if (calls.isEmpty()) return;
        Queue<Runnable> outer = PENDING.get();
        if (outer != null) {
            outer.addAll(calls);
            return;
        }
        Queue<Runnable> mine = new ArrayDeque<>(calls);
        PENDING.set(mine);
        try {
            for (Runnable next = mine.poll(); next != null; next = mine.poll()) next.run();
        } finally {
            PENDING.set(null);
        }
    }
}
