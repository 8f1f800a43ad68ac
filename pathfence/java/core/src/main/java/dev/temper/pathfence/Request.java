// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence;

/** What the core knows of a request. */
final class Request {
    final long id;
    final String key;
    final PathClass of;
    /** Its place in the order of all arrivals. */
    long order;

    long arrived;
    long deadline;
    /** The target, where the deadline is one of a peer that is not trusted; else 0. */
    long expires;
    long granted;
    long depth;
    /** Requests that run on this one's permit, itself included. */
    long sharers = 1;
    /** It has no worker yet. */
    boolean waits;
    /** Itself has ended, sharers have not. */
    boolean done;
    /** The request whose permit this one shares, or null. */
    Request root;

    Outcome outcome = Outcome.OK;

    Request(long id, String key, PathClass of) {
        this.id = id;
        this.key = key;
        this.of = of;
    }
}
