// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence;

/** How a request ended. */
public enum Outcome {
    /** It was answered, in time or not: the deadline tells. */
    OK,
    /** The downstream refused, failed or timed out: nothing was achieved. */
    FAIL,
    /** The client went away, which says nothing of the downstream. */
    CANCEL,
    /**
     * Refused, not found, redirected; or the request goes on without a worker. Where it took less than half as long as
     * requests of its class do, it was hardly any work, and teaches nothing.
     */
    LIGHT
}
