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

    /** The one that runs. */
    Window window;
    /** The windows before it that are not concluded from yet. */
    Sample sample = new Sample();

    private Holds holds = new Holds();
    /** Their median. */
    long hold;

    // The controller. The specification's "Limit".
    /** The last samples, the oldest first. */
    final ArrayDeque<Point> ring = new ArrayDeque<>();
    /** Those concluded from, ever. */
    long samples;
    /** Where the last fit put it. */
    long knee;
    /** Samples in a row whose requests hold workers for far longer, or shorter, than the ring's. */
    long misfits;
    /** Windows in a row in which the limit was not needed, since it last drifted. */
    long quietFor;
    /** This sample is taken below the limit. */
    boolean dip;
    /** The value of samples then. */
    long lastDip;
    /** Samples that begin before it say nothing of the limit in force. */
    long coolTill;
    /** The part of the last answers that were in time, in thousandths, smoothed. */
    private long punctual;
    /** Three quarters were once: what never was in time is not slow, its target is too short. */
    boolean timely;
    /** Samples in a row in which too much was late. */
    long late;
    /** Their completions. */
    long lateDone;
    /** Their length. */
    long lateTime;
    /** The limit before a cut that the next sample judges; 0: none. */
    long cutFrom;
    /** Goodput before that cut, as a point's. */
    long cutGood;
    /** The next cut, after one was undone. */
    long noCutUntil;
    /** How long the wait was: doubled with each in a row. */
    long cutPause;

    Limited(String name, long now) {
        this.name = name;
        window = new Window(now);
    }

    /** Gives the controller another target, which it has yet to meet. */
    final void aim(long to) {
        if (to == target) return;
        target = to;
        punctual = 0;
        timely = false;
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
        boolean good = r.outcome != Outcome.FAIL && now <= r.deadline;
        punctual += ((good ? 1000 : 0) - punctual) / 16;
        timely = timely || punctual >= 750;
        if (good) window.good++;
        if (r.outcome == Outcome.FAIL) return;
        hold = holds.add(Math.min(now - r.granted, LONGEST_HOLD));
    }
}
