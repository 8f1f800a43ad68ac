// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** What the parts of the core share: the configuration in force, the clock, classes, requests, and what was decided. */
final class Ledger {
    private static final long LEAST_LIMIT = 2;

    Config config;
    long now;
    /** The time that has passed, but of each silence only the beginning. */
    long heard;
    /** Buckets first, then the others as they came. */
    final List<PathClass> classes = new ArrayList<>();
    /** The number of buckets: that of the start. */
    final int buckets;

    long inFlight;
    /** Requests that have ended, those that were cancelled left out. */
    long turns;

    final Map<Long, Request> waiting = new HashMap<>();
    final Map<Long, Request> running = new HashMap<>();
    private List<Decision> decisions = new ArrayList<>();

    Ledger(Config config, long now) {
        this.config = config;
        this.now = now;
        buckets = (int) config.unknownBuckets();
        for (int i = 0; i < buckets; i++) {
            PathClass c = new PathClass(i, "~u" + i, true, now);
            c.weight = Lending.DEFAULT_WEIGHT;
            c.target = config.target();
            c.limit = unknownLimit();
            classes.add(c);
        }
    }

    PathClass add(ClassConfig k) {
        PathClass c = new PathClass(classes.size(), k.name(), false, now);
        c.weight = k.weight();
        c.target = k.target();
        c.limit = k.limit() > 0 ? Math.min(k.limit(), config.workers()) : config.workers();
        c.hold = k.hold();
        classes.add(c);
        return c;
    }

    PathClass named(String name) {
        for (PathClass c : classes) if (c.name.equals(name)) return c;
        return null;
    }

    long unknownLimit() {
        return Math.max(1, config.workers() / 8);
    }

    void setLimit(PathClass c, long wanted, String reason) {
        long limit = Math.max(Math.min(LEAST_LIMIT, config.workers()), Math.min(wanted, config.workers()));
        if (limit == c.limit) return;
        c.touch(now);
        c.limit = limit;
        c.reason = reason;
        decisions.add(new Decision(Decision.Kind.LIMIT, 0, c.name, false, reason, limit));
    }

    void granted(Request r, boolean lent, String reason) {
        decisions.add(new Decision(Decision.Kind.GRANT, r.id, r.of.name, lent, reason, 0));
    }

    /** Ends a request that is in no queue any more. */
    void shed(Request r, String reason) {
        r.of.shed++;
        decisions.add(new Decision(Decision.Kind.SHED, r.id, r.of.name, false, reason, 0));
        waiting.remove(r.id);
    }

    void stopped(PathClass c, String reason) {
        decisions.add(new Decision(Decision.Kind.STOP, 0, c.name, false, reason, 0));
    }

    /** Hands out the decisions since the last call. */
    List<Decision> take() {
        if (decisions.isEmpty()) return List.of();
        List<Decision> d = decisions;
        decisions = new ArrayList<>();
        return d;
    }
}
