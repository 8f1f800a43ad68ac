// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence;

import java.util.ArrayDeque;

/** What is known of the requests that use one set of downstream edges. */
final class PathClass {
    static final long NEVER = -(1L << 60);

    final int index;
    final String name;
    /** One of the buckets for keys without a class. */
    final boolean unknown;

    long weight;
    long target;
    /** The last arrival. */
    long seen;

    long inFlight;
    final ArrayDeque<Request> queue = new ArrayDeque<>();
    long reserve;
    long limit;
    long granted;
    long shed;
    long missed;
    long failed;
    String reason = "";

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

    // The limit's controller
    Window window;
    Sample sample = new Sample();
    private final Holds holds = new Holds();
    long hold;
    final ArrayDeque<Point> ring = new ArrayDeque<>();
    long samples;
    long knee;
    long odd;
    long quietFor;
    long lastDip;
    long coolTill;
    boolean dip;
    long late;
    long lateDone;
    long lateTime;
    long cutFrom;
    long cutGood;
    long noCut;
    long cutPause;

    PathClass(int index, String name, boolean unknown, long now) {
        this.index = index;
        this.name = name;
        this.unknown = unknown;
        seen = unknown ? NEVER : now;
        lastTurn = now;
        window = new Window(now);
    }

    /** What it could use at once. */
    long demand() {
        return inFlight + queue.size();
    }

    /** What others may keep free for it at most. */
    long entitled() {
        return Math.min(limit, Math.max(reserve, usual.value()));
    }

    /** The limit in force. */
    long cap() {
        return dip ? Math.max(1, (limit * 7 + 9) / 10) : limit;
    }

    /** Brings the window's sums up to now; call it before anything changes that they depend on. */
    void touch(long now) {
        long d = now - window.touched;
        window.touched = now;
        window.area += inFlight * d;
        if (queue.isEmpty()) return;
        window.queued += d;
        if (inFlight >= cap()) window.limited += d;
    }

    void learnHold(long nanos) {
        hold = holds.add(nanos);
    }

    ClassState state() {
        return new ClassState(
                name,
                limit,
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
                reason);
    }
}
