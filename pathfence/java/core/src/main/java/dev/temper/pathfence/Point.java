// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence;

/**
 * A sample as a point of the scatter.
 *
 * @param n in flight, in thousandths
 * @param good ended in time, in thousandths a window
 * @param done ended, in thousandths a window
 * @param full whether the limit bound
 */
record Point(long n, long good, long done, boolean full) {}
