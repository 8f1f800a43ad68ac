// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence;

/** A value, in thousandths, that 990 of 1000 stay below. */
final class Quantile {
    private long value;
    private long before; // when the window began

    void note(long v) {
        long step = Math.max(100, value / 32);
        if (v * 1000 > value) value += step * 990 / 1000;
        else value = Math.max(0, value - Math.max(1, step * 10 / 1000));
    }

    long value() {
        return value;
    }

    /** The next window begins with what is there now. */
    void keep() {
        before = value;
    }

    /** Forgets what was noted since the window began. */
    void drop() {
        value = before;
    }
}
