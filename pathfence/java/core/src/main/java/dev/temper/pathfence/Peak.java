// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence;

/** The maximum over the last windows that were kept. */
final class Peak {
    private static final int BLOCKS = 8;
    private static final int WINDOWS = 4; // a block

    private long current;
    private long kept;
    private long value;
    private final long[] blocks = new long[BLOCKS]; // the newest first

    void note(long v) {
        current = Math.max(current, v);
    }

    void drop() {
        current = 0;
    }

    void keep() {
        if (kept++ % WINDOWS == 0) {
            System.arraycopy(blocks, 0, blocks, 1, BLOCKS - 1);
            blocks[0] = 0;
        }
        blocks[0] = Math.max(blocks[0], current);
        current = 0;
        value = 0;
        for (long b : blocks) value = Math.max(value, b);
    }

    long value() {
        return value;
    }
}
