// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence;

import java.util.ArrayDeque;

/** What has a limit, and what that limit's controller knows: a class, or a group of them. */
abstract class Limited {
    private static final long LONGEST_HOLD = 600_000_000_000L;

    final String name;
    long target;
    long inFlight;
    long limit;
    /** Of the limit's last change. */
    String reason = "";

    Window window;
    Sample sample = new Sample();
    private Holds holds = new Holds();
    long hold;

    // The controller
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

    Limited(String name, long now) {
        this.name = name;
        window = new Window(now);
    }

    /** The limit in force. */
    final long cap() {
        return dip ? Math.max(1, (limit * 7 + 9) / 10) : limit;
    }

    /** Brings the window's sums up to now; call it before anything changes that they depend on. */
    abstract void touch(long now);

    /** Brings the sums up to now; something has waited since they were, or nothing has. */
    final void touch(long now, boolean waited) {
        long d = now - window.touched;
        window.touched = now;
        window.area += inFlight * d;
        if (!waited) return;
        window.queued += d;
        if (inFlight >= cap()) window.bound += d;
    }

    /** Ends the window, and begins the next. */
    final Window closeWindow(long now) {
        touch(now);
        Window over = window;
        window = new Window(now);
        return over;
    }

    /** What is known of how long requests take is not of those that succeed. */
    final void forgetHolds() {
        holds = new Holds();
    }

    /** Counts a completion in the window. */
    void finished(long now, Request r) {
        window.done++;
        if (r.outcome == Outcome.FAIL) return;
        if (now <= r.deadline) window.good++;
        hold = holds.add(Math.min(now - r.granted, LONGEST_HOLD));
    }
}
