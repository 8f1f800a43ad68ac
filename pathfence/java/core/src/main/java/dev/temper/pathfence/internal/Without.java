// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.internal;

/**
 * Switches single parts of the fence off, for benchmarks.
 *
 * @param lend no class goes beyond its reserve
 * @param protect lending looks at nobody's usual demand
 * @param shed only what has expired is shed, and what finds the queue full
 * @param newest a queue is served in order of arrival also under overload
 * @param learn limits stay where they start
 * @param excite no dips and no steps up to learn from
 * @param panic an unmet reserve and a stalled borrower have no consequence
 */
public record Without(
        boolean lend, boolean protect, boolean shed, boolean newest, boolean learn, boolean excite, boolean panic) {
    /** The whole fence. */
    public static final Without NOTHING = new Without(false, false, false, false, false, false, false);
}
