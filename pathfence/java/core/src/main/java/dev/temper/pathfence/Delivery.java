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
    private static final ThreadLocal<Delivery> HERE = new ThreadLocal<>();

    /** What callbacks of this delivery led to; null: nothing yet. */
    private Queue<Runnable> further;

    private Delivery() {}

    /** Whether this thread is inside of a callback. */
    static boolean underWay() {
        return HERE.get() != null;
    }

    /** Calls what never throws. */
    static void deliver(List<Runnable> calls) {
        if (calls.isEmpty()) return;
        Delivery outer = HERE.get();
        if (outer == null) new Delivery().run(calls);
        else outer.after(calls);
    }

    private void after(List<Runnable> calls) {
        if (further == null) further = new ArrayDeque<>();
        further.addAll(calls);
    }

    private void run(List<Runnable> calls) {
        HERE.set(this);
        try {
            for (Runnable call : calls) call.run();
            while (further != null && !further.isEmpty()) further.remove().run();
        } finally {
            HERE.set(null);
        }
    }
}
