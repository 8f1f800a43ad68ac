// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence;

/** Windows added up, until there is enough to conclude from. */
final class Sample {
    long area;
    long bound;
    long done;
    long good;
    long length;
    long windows;

    void add(Window w, long time) {
        area += w.area;
        bound += w.bound;
        done += w.done;
        good += w.good;
        length += time;
        windows++;
    }

    Point point(long window) {
        return new Point(
                area * 1000 / length,
                good * 1000 * window / length,
                done * 1000 * window / length,
                bound * 10 > length * 3);
    }
}
