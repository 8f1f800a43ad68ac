// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence;

/** Reserves, and what of them is lent. The specification's "Reserve", "Lending", "Stall", "Panic". */
final class Lending {
    static final long DEFAULT_WEIGHT = 100;

    private static final long MS = 1_000_000;
    private static final long ACTIVE_FOR = 60_000 * MS;
    private static final long BAR_FIRST = 1000 * MS;
    private static final long BAR_LONGEST = 8000 * MS;
    private static final long BAR_MEMORY = 16_000 * MS;
    private static final long ALONE_TURNS = 2;

    private final Ledger ledger;
    private final Suspects suspects;

    Lending(Ledger ledger, Suspects suspects) {
        this.ledger = ledger;
        this.suspects = suspects;
    }

    void arrived(PathClass c) {
        boolean woke = ledger.now - c.seen >= ACTIVE_FOR;
        c.seen = ledger.now;
        c.window.arrivals++;
        if (woke) shareOut();
    }

    private boolean active(PathClass c) {
        return c.inFlight > 0 || ledger.now - c.seen < ACTIVE_FOR;
    }

    /**
     * Divides the workers among the active classes, by weight. All buckets together count as one class. Nobody has all
     * workers by right: what is asked for next would find none.
     */
    void shareOut() {
        long sum = 0;
        boolean bucket = false;
        for (PathClass c : ledger.classes) {
            if (!active(c)) continue;
            if (c.unknown) bucket = true;
            else sum += c.weight;
        }
        if (bucket) sum += DEFAULT_WEIGHT;
        long workers = ledger.config.workers();
        for (PathClass c : ledger.classes) {
            if (c.unknown) c.reserve = 1;
            else if (sum > 0) c.reserve = Math.max(1, Math.min(workers * c.weight / sum, workers - 1));
        }
    }

    /**
     * Whether the next worker of a class is its own. Buckets have one each, as long as not too many do. What a bucket
     * has borrowed is not counted: it would be held against the others when its downstream hangs.
     */
    boolean withinReserve(PathClass c) {
        if (c.inFlight >= c.reserve) return false;
        if (!c.unknown) return true;
        long busy = 0;
        for (int i = 0; i < ledger.buckets; i++) if (ledger.classes.get(i).inFlight > 0) busy++;
        return busy < bucketsByRight();
    }

    /** An eighth of the workers, but so many that one bucket whose downstream hangs is not all of them. */
    private long bucketsByRight() {
        return ledger.config.workers() < 4 ? 1 : Math.max(2, ledger.unknownLimit());
    }

    /** Remembers how much was wanted at once, after an arrival in class c. */
    void noteDemand(PathClass c) {
        c.usual.note(c.demand());
        long sum = 0;
        for (PathClass o : ledger.classes) sum += o.wants();
        for (PathClass o : ledger.classes)
            if (o != c) o.others.note(Math.min(sum - o.wants(), ledger.config.workers()));
    }

    boolean mayBorrow(PathClass c, long free) {
        if (ledger.config.without().lend() || ledger.now < c.barUntil || stalled(c)) return false;
        if (c.unknown && c.inFlight == 0) return free > keptForClasses();
        long keep = 0;
        long held = 0;
        long level = 0;
        long turn = 0;
        boolean alone = true;
        for (PathClass o : ledger.classes) {
            if (o == c) continue;
            alone = alone && !active(o);
            long wants = o.wants();
            keep += wants;
            held += Math.min(o.inFlight, wants);
            level += o.level;
            turn += o.turn;
        }
        if (alone) return free > spare(c);
        if (!ledger.config.without().protect()) keep = Math.max(keep, (c.others.value() + 500) / 1000);
        // What c gives back while the others' requests would wait for as long as they take anyhow.
        // Whoever stood still while others were answered gave back nothing that they could have used, and may do so
        // again.
        long back = turn > 0 && !c.alarmed ? c.turnNow * level / (1000 * turn) : 0;
        return free > Math.max(Math.max(1, spare(c)), keep - held - back);
    }

    /**
     * How many workers a bucket leaves of which nothing is in flight. It may be that of a quick path beside others that
     * hang, so it leaves none for other buckets; for classes what they want now, and one while there are any.
     */
    private long keptForClasses() {
        long one = 0;
        long want = 0;
        for (PathClass o : ledger.classes.subList(ledger.buckets, ledger.classes.size())) {
            if (active(o)) one = 1;
            want += Math.max(0, o.wants() - o.inFlight);
        }
        return Math.max(one, want);
    }

    /**
     * How many of the free workers a class leaves, whoever else is there: none, if its requests take what they should.
     * What is slow, or has yet to come back for the first time, may hold what it takes for as long as a client waits.
     */
    private long spare(PathClass c) {
        if (c.hold > 0 && c.hold <= c.target) return 0;
        return c.unknown ? Math.max(bucketsByRight(), ledger.config.workers() / 4) : 1;
    }

    private boolean stalled(PathClass c) {
        if (ledger.config.without().panic() || c.inFlight == 0) return false;
        long one = c.hold > 0 ? c.hold : c.target; // what one request takes: in a burst, nothing comes back before
        long usual = c.turn > 0 ? 8 * c.level * ledger.config.window() / c.turn : 8 * one;
        return ledger.heard - c.turnHeard >= Math.max(usual / c.inFlight, one + ledger.config.stall());
    }

    /**
     * Whether a stalled class has to wait; its limit goes down, too, since what has queued would otherwise go to its
     * downstream all at once when that answers again.
     */
    boolean halted(PathClass c) {
        if (!stalled(c)) return false;
        if (c.stalledAt != c.lastTurn && !c.unknown && !ledger.config.without().learn()) {
            c.stalledAt = c.lastTurn;
            c.stallTurns = ledger.turns;
            long to = 2 * c.usual.value() + 4;
            if (c.alarmed) to = Math.max(to * 5 / 8, c.limit * 7 / 8);
            c.touch(ledger.now);
            ledger.setLimit(c, Math.min(c.limit, to), "stall");
            suspects.mistrust(c);
            if (c.group != null) suspects.contain(c.group);
        }
        return ledger.now - c.lastPush < c.target / 4;
    }

    /**
     * Something of the class has come back. If it had stalled, and others were answered meanwhile, it was its own
     * downstream that stood still.
     */
    void turned(PathClass c) {
        if (c.stalledAt == c.lastTurn && ledger.turns - c.stallTurns >= ALONE_TURNS) c.alarmed = true;
        c.lastTurn = ledger.now;
        c.turnHeard = ledger.heard;
    }

    /** Bars the class that went furthest beyond its reserve while another's reserve is unmet. */
    void panicRule() {
        if (ledger.config.without().panic() || ledger.classes.stream().noneMatch(this::unmet)) return;
        PathClass culprit = null;
        for (PathClass c : ledger.classes)
            if (c.inFlight > c.reserve
                    && (culprit == null || c.inFlight - c.reserve > culprit.inFlight - culprit.reserve)) culprit = c;
        if (culprit == null || ledger.now < culprit.barUntil) return;
        boolean again = culprit.barFor > 0 && ledger.now - culprit.barUntil < BAR_MEMORY;
        culprit.barFor = again ? Math.min(2 * culprit.barFor, BAR_LONGEST) : BAR_FIRST;
        culprit.barUntil = ledger.now + culprit.barFor;
        ledger.stopped(culprit, "panic");
    }

    /**
     * Whether a class has waited for what is its own. Where its requests in flight are not answered either, it is not
     * workers that it waits for.
     */
    private boolean unmet(PathClass c) {
        if (c.queue.isEmpty() || c.full() || !withinReserve(c)) return false;
        long since = c.queue.peekFirst().arrived;
        return ledger.now - since >= ledger.config.panic() && (c.inFlight == 0 || c.lastTurn > since);
    }
}
