// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;

/** Who gets a worker, and what is shed. The specification's "Queue", "Pump", "Re-entry". */
final class Pump {
    static final int MAX_DEPTH = 8;

    private static final long DEPTH_LIFE = 60_000_000_000L;
    private static final long LEAST_QUEUE = 32;
    private static final long QUEUE_SCALE = 4;

    private final Ledger ledger;
    private final Lending lending;
    /** Waiting, and in this service for a second time or more. */
    private final List<Request> nested = new ArrayList<>();
    /** When a request of this depth came last. */
    private final long[] levels = new long[MAX_DEPTH + 1];

    Pump(Ledger ledger, Lending lending) {
        this.ledger = ledger;
        this.lending = lending;
        Arrays.fill(levels, PathClass.NEVER);
    }

    void enqueue(PathClass c, Request r) {
        c.touch(ledger.now);
        if (c.queue.isEmpty()) c.stands = ledger.now;
        if (ledger.config.off() || c.queue.size() < queueMax(c)) {
            c.queue.addLast(r);
            return;
        }
        Request victim = r;
        if (!ledger.config.without().newest()) {
            victim = c.queue.removeFirst();
            c.queue.addLast(r);
        }
        ledger.shed(victim, "full");
    }

    void enqueueNested(Request r) {
        levels[(int) r.depth] = ledger.now;
        if (!ledger.config.off() && nested.size() >= ledger.config.queueMax()) ledger.shed(r, "full");
        else nested.add(r);
    }

    private long queueMax(PathClass c) {
        long most = ledger.config.queueMax();
        if (c.hold == 0) return most;
        long limit = c.unknown ? ledger.config.workers() : c.limit;
        return Math.min(most, Math.max(LEAST_QUEUE, QUEUE_SCALE * limit * c.target / c.hold));
    }

    /** Takes a request out of the queue in which it waits. */
    void unqueue(Request r) {
        r.of.touch(ledger.now);
        if (r.depth > 0) nested.remove(r);
        else r.of.queue.remove(r);
    }

    /**
     * The time that a request should have left when it gets a worker. A class of low rate hears of a change late, its group
     * sooner.
     */
    private long margin(PathClass c) {
        long hold = c.group == null ? c.hold : Math.max(c.hold, c.group.hold);
        return hold * ledger.config.gammaPermille() / 1000;
    }

    /** Why a waiting request should not be served, or null. */
    private String hopeless(Request r) {
        long left = r.deadline - ledger.now;
        if (left <= 0) return "expired";
        boolean spared =
                ledger.config.without().shed() || r.of.inFlight == 0 || ledger.now - r.arrived < ledger.config.grace();
        // A queue that drains within the target is no sign of anything.
        if (spared || ledger.now - r.of.stands < r.of.target) return null;
        return left < Math.min(margin(r.of), (r.deadline - r.arrived) / 2) ? "late" : null;
    }

    /** Sheds all that is hopeless in every queue. */
    void sweep() {
        for (PathClass c : ledger.classes) {
            c.touch(ledger.now);
            for (Iterator<Request> i = c.queue.iterator(); i.hasNext(); ) {
                Request r = i.next();
                String reason = hopeless(r);
                if (reason == null) continue;
                i.remove();
                ledger.shed(r, reason);
            }
        }
    }

    private void trim(PathClass c) {
        while (!c.queue.isEmpty()) {
            String reason = hopeless(c.queue.peekFirst());
            if (reason == null) return;
            c.touch(ledger.now);
            ledger.shed(c.queue.removeFirst(), reason);
        }
    }

    void pump() {
        if (ledger.config.off()) {
            pumpPlain();
            return;
        }
        if (ledger.waiting == 0) return;
        pumpNested();
        while (ledger.waiting > 0) {
            for (PathClass c : ledger.classes) trim(c);
            long free = ledger.config.workers() - ledger.inFlight - deepest();
            PathClass c = free > 0 ? next(free) : null;
            if (c == null) return;
            boolean lent = !lending.withinReserve(c);
            grant(pop(c), lent, "");
        }
    }

    /**
     * The class that gets the next worker: those within their reserve come first, then those that may borrow; among
     * equals the one with the least in flight for its weight, then the one whose last grant is longest ago. A bucket
     * that has its limit comes after all others: what is not known is bounded while somebody else wants the workers.
     */
    private PathClass next(long free) {
        PathClass best = null;
        int bestRank = 0;
        for (PathClass c : ledger.classes) {
            if (c.queue.isEmpty() || lending.halted(c) || c.full() && !c.unknown) continue;
            boolean lent = !lending.withinReserve(c);
            if (lent && !lending.mayBorrow(c, free)) continue;
            int rank = c.full() ? 2 : lent ? 1 : 0;
            if (best != null && (rank > bestRank || rank == bestRank && !c.before(best))) continue;
            best = c;
            bestRank = rank;
        }
        return best;
    }

    private Request pop(PathClass c) {
        c.touch(ledger.now);
        boolean newest = !ledger.config.without().newest()
                && margin(c) >= c.target / 2
                && ledger.now - c.queue.peekFirst().arrived >= ledger.config.grace()
                && hopeless(c.queue.peekLast()) == null;
        return newest ? c.queue.removeLast() : c.queue.removeFirst();
    }

    void grant(Request r, boolean lent, String reason) {
        PathClass c = r.of;
        c.touch(ledger.now);
        if (c.inFlight == 0) {
            c.lastTurn = ledger.now;
            c.turnHeard = ledger.heard;
        }
        c.lastPush = ledger.now;
        ledger.hold(c, 1);
        c.granted++;
        r.granted = ledger.now;
        ledger.waitsNoMore(r);
        ledger.granted(r, lent, reason);
    }

    /** How many workers are left to requests that are here for a second time or more. */
    private long deepest() {
        for (int d = MAX_DEPTH; d > 0; d--)
            if (ledger.now - levels[d] < DEPTH_LIFE) return Math.min(d, ledger.config.workers() - 1);
        return 0;
    }

    /** Requests that are in this service for a second time or more: their callers hold workers here. */
    private void pumpNested() {
        for (Iterator<Request> i = nested.iterator(); i.hasNext(); ) {
            Request r = i.next();
            if (r.deadline > ledger.now) continue;
            i.remove();
            ledger.shed(r, "expired");
        }
        while (!nested.isEmpty()) {
            Request r = deepestNested();
            if (ledger.config.workers() - ledger.inFlight - Math.max(0, deepest() - r.depth) <= 0) return;
            nested.remove(r);
            grant(r, false, "");
        }
    }

    /** The first of the deepest. */
    private Request deepestNested() {
        Request best = nested.get(0);
        for (Request r : nested) if (r.depth > best.depth) best = r;
        return best;
    }

    /** The plain pool: one queue, in order of arrival, nothing shed. */
    private void pumpPlain() {
        while (ledger.unbounded || ledger.inFlight < ledger.config.workers()) {
            Request first = null;
            for (PathClass c : ledger.classes) first = earlier(first, c.queue.peekFirst());
            for (Request r : nested) first = earlier(first, r);
            if (first == null) return;
            unqueue(first);
            grant(first, false, "");
        }
    }

    private static Request earlier(Request a, Request b) {
        if (a == null || b == null) return a == null ? b : a;
        return b.order < a.order ? b : a;
    }
}
