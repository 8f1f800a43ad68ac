// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence;

import java.util.ArrayDeque;
import java.util.List;
import java.util.Set;

/** What is known of the requests that use one set of downstream edges. */
final class PathClass extends Limited {
    static final long NEVER = -(1L << 60);

    /** One of the buckets for keys without a class. */
    final boolean unknown;
    /** By its edges, not configured. */
    boolean learned;

    long weight;
    /** The last arrival. */
    long seen;
    /** Something ended well. */
    private boolean succeeded;

    final ArrayDeque<Request> queue = new ArrayDeque<>();
    /** Since then the queue has not been empty, if it is not. */
    long stands;
    long reserve;
    long granted;
    long shed;
    long missed;
    long failed;

    // Lending
    final Peak usual = new Peak();
    final Quantile others = new Quantile();
    long turn;
    long turnNow;
    long level;
    /** Stalled, while others were answered, since it last got what it asked for. */
    boolean alarmed;

    long stalledAt = NEVER;
    /** The ledger's turns when it stalled last. */
    long stallTurns;

    long lastPush = NEVER;
    long lastTurn;
    /** How much the ledger had heard at lastTurn. */
    long turnHeard;

    long barUntil;
    long barFor;

    // What its group follows from
    final Edges edges;
    /** Completions in a row that were no good. */
    long misses;
    /** Windows since something was late, or its group's limit bound. */
    long calm;

    boolean suspect;
    /** The classes that it is late together with, or null. */
    Group group;

    PathClass(String name, boolean unknown, Set<String> edges, long now) {
        super(name, now);
        this.unknown = unknown;
        this.edges = new Edges(edges);
        seen = unknown ? NEVER : now;
        lastTurn = now;
    }

    /** What it could use at once. */
    long demand() {
        return inFlight + queue.size();
    }

    /** What others may keep free for it at most. */
    long entitled() {
        return Math.min(limit, Math.max(reserve, usual.value()));
    }

    /**
     * How many workers others leave to it now: as many as it has requests, if it is entitled to them; but no more than do
     * what has come within a 256th of its target, or a few quick requests at once would take half of a pool.
     */
    long wants() {
        long d = demand();
        if (d > 0 && hold > 0 && hold * 256 < target) // else it bounds nothing, and a division costs
            d = Math.min(d, (d * hold * 256 + target - 1) / target);
        return Math.min(d, entitled());
    }

    /** Whether it comes before another where both are within their reserve, or both are not. */
    boolean before(PathClass other) {
        long mine = inFlight * other.weight;
        long others = other.inFlight * weight;
        return mine < others || mine == others && lastPush < other.lastPush;
    }

    /** Whether it has, or its group, all that it may have. */
    boolean full() {
        return inFlight >= cap() || group != null && group.full();
    }

    /** Brings its group's sums up to now, too. */
    @Override
    void touch(long now) {
        if (group != null) group.touch(now);
        touch(now, !queue.isEmpty());
    }

    @Override
    void finished(long now, Request r) {
        if (r.outcome == Outcome.FAIL) failed++;
        else if (now > r.deadline) missed++;
        if (r.outcome == Outcome.OK && !succeeded) {
            succeeded = true;
            forgetHolds();
        }
        super.finished(now, r);
        if (group != null) group.finished(now, r);
    }

    ClassState state(List<String> keys) {
        boolean together = group != null && group.limit < limit;
        return new ClassState(
                name,
                together ? group.limit : limit,
                reserve,
                inFlight,
                queue.size(),
                Math.max(0, inFlight - reserve),
                granted,
                shed,
                missed,
                failed,
                knee,
                hold,
                together ? "together" : reason,
                keys);
    }
}
