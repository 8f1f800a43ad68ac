// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** What the parts of the core share: the configuration in force, the clock, classes, requests, and what was decided. */
final class Ledger {
    private static final long LEAST_LIMIT = 2;
    private static final int USUALLY = 1; // decision follows from an event

    Config config;
    /** Off, nothing is bounded. */
    final boolean unbounded;

    long now;
    /** The time that has passed, but of each silence only the beginning. */
    long heard;
    /** Buckets first, then the others as they came. */
    final List<PathClass> classes = new ArrayList<>();
    /** Of classes that are late together. */
    List<Group> groups = List.of();
    /** The number of buckets: that of the start. */
    final int buckets;

    long inFlight;
    /** Requests that have ended, those that were cancelled left out. */
    long turns;

    /** Those that wait, and those in flight. */
    final Map<Long, Request> requests = new HashMap<>();

    /** How many of them wait. */
    long waiting;

    private List<Decision> decisions = new ArrayList<>(USUALLY);

    Ledger(Config config, boolean unbounded, long now) {
        this.config = config;
        this.unbounded = unbounded;
        this.now = now;
        buckets = (int) config.unknownBuckets();
        for (int i = 0; i < buckets; i++) {
            PathClass c = new PathClass("~u" + i, true, Set.of(), now);
            c.weight = Lending.DEFAULT_WEIGHT;
            c.target = config.target();
            c.limit = unknownLimit();
            classes.add(c);
        }
    }

    /** Adds a class whose requests are known to use these edges. */
    PathClass add(ClassConfig k, Set<String> edges) {
        PathClass c = new PathClass(k.name(), false, edges, now);
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

    /** Whether limits are learned. */
    boolean learns() {
        return !config.off() && !config.without().learn();
    }

    /** All that has a limit: the classes, then the groups. */
    List<Limited> limits() {
        List<Limited> all = new ArrayList<>(classes);
        all.addAll(groups);
        return all;
    }

    /** Takes permits, or gives them back. Sums that depend on it have to be up to now. */
    void hold(PathClass c, long permits) {
        c.inFlight += permits;
        if (c.group != null) c.group.inFlight += permits;
        inFlight += permits;
    }

    /** A request comes, and waits. */
    void waits(Request r) {
        requests.put(r.id, r);
        r.waits = true;
        waiting++;
    }

    void waitsNoMore(Request r) {
        r.waits = false;
        waiting--;
    }

    /** A request that waits is gone. */
    void withdraw(Request r) {
        waitsNoMore(r);
        requests.remove(r.id);
    }

    /** The request in flight of an id, or null. */
    Request running(long id) {
        Request r = requests.get(id);
        return r == null || r.waits ? null : r;
    }

    /** Moves a limit. Sums that depend on it have to be up to now. */
    void setLimit(Limited l, long wanted, String reason) {
        long limit = Math.max(Math.min(LEAST_LIMIT, config.workers()), Math.min(wanted, config.workers()));
        if (limit == l.limit) return;
        l.limit = limit;
        l.reason = reason;
        decisions.add(new Decision(Decision.Kind.LIMIT, 0, l.name, false, reason, limit));
    }

    void granted(Request r, boolean lent, String reason) {
        decisions.add(new Decision(Decision.Kind.GRANT, r.id, r.of.name, lent, reason, 0));
    }

    /** Ends a request that is in no queue any more. */
    void shed(Request r, String reason) {
        r.of.shed++;
        decisions.add(new Decision(Decision.Kind.SHED, r.id, r.of.name, false, reason, 0));
        withdraw(r);
    }

    void stopped(PathClass c, String reason) {
        decisions.add(new Decision(Decision.Kind.STOP, 0, c.name, false, reason, 0));
    }

    /** Hands out the decisions since the last call. */
    List<Decision> take() {
        if (decisions.isEmpty()) return List.of();
        List<Decision> d = decisions;
        decisions = new ArrayList<>(USUALLY);
        return d;
    }
}
