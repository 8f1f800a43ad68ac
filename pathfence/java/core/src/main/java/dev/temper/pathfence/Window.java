// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence;

/** What a class, or a group, did since the window began. */
final class Window {
    long touched;
    /** In flight times time. */
    long area;
    /** The time with a queue that is not empty. */
    long queued;
    /** The part of it with the limit in force met. */
    long bound;

    long arrivals;
    long done;
    long good;
    /** That ended without being counted in done: hardly any work. */
    long light;

    Window(long touched) {
        this.touched = touched;
    }
}
