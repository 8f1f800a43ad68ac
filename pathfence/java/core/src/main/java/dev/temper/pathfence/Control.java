// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence;

import java.util.List;

/** Windows, and the limit that is learned from them. The specification's "Windows", "Limit". */
final class Control {
    private static final int RING = 40;
    private static final int ENOUGH = 15;
    private static final long SAMPLE_DONE = 16;
    private static final long SAMPLE_WINDOWS = 10;
    private static final long FIT_EVERY = 8;
    private static final long LEAST = 2;
    private static final long PAUSE_FIRST = 1_000_000_000;
    private static final long PAUSE_LONGEST = 16_000_000_000L;

    private final Ledger ledger;
    private final Lending lending;
    private final Suspects suspects;
    private boolean stood; // in this window nothing was heard for half of one
    private boolean stoodBefore; // in the one before

    Control(Ledger ledger, Lending lending, Suspects suspects) {
        this.ledger = ledger;
        this.lending = lending;
        this.suspects = suspects;
    }

    void emptySamples() {
        for (PathClass c : ledger.classes) c.touch(ledger.now);
        for (Limited l : ledger.limits()) l.sample = new Sample();
    }

    /** Notes that nothing was heard for half of a window. */
    void stoodStill() {
        stood = true;
    }

    /**
     * Ends a window. Where the process, or whoever ticks, stood still, what was measured is nobody's fault, and is dropped;
     * and so is what comes in the next window, when all arrives at once that was sent meanwhile.
     */
    void closeWindow(long length) {
        boolean valid = !stood && !stoodBefore;
        stoodBefore = stood;
        stood = false;
        for (PathClass c : ledger.classes) close(c, length, valid);
        for (Group g : ledger.groups) close(g, length, valid);
        if (valid) suspects.acquit();
        lending.shareOut();
        if (valid && !ledger.config.off()) lending.panicRule();
    }

    private void close(PathClass c, long length, boolean valid) {
        Window w = c.closeWindow(ledger.now);
        if (!valid) {
            c.usual.drop();
            c.others.drop();
            c.sample = new Sample();
            return;
        }
        keepPeaks(c, w, length);
        if (!c.unknown) learn(c, w, length);
    }

    private void close(Group g, long length, boolean valid) {
        Window w = g.closeWindow(ledger.now);
        if (!valid) {
            g.sample = new Sample();
            return;
        }
        if (w.bound > 0) g.keptBack();
        learn(g, w, length);
    }

    /**
     * Takes the window's peaks into the memory. The class's own counts only if it got what it asked for, and gave back
     * about as much as it took: else it is the wait that made the demand.
     */
    private void keepPeaks(PathClass c, Window w, long length) {
        c.others.keep();
        if (w.queued * 10 < length && (w.done + w.light) * 4 + 8 >= w.arrivals * 3) {
            c.usual.keep();
            c.alarmed = false;
        } else {
            c.usual.drop();
        }
        c.turnNow = w.done * 1000;
        c.turn += (c.turnNow - c.turn) / 4;
        c.level += (w.area * 1000 / length - c.level) / 4;
    }

    private void learn(Limited l, Window w, long length) {
        if (!ledger.learns()) return;
        l.sample.add(w, length);
        drift(l, w, length);
        if (l.sample.done < SAMPLE_DONE && l.sample.windows < SAMPLE_WINDOWS) return;
        Sample full = l.sample;
        l.sample = new Sample();
        if (ledger.now - full.length >= l.coolTill) conclude(l, full);
    }

    /** Lets a limit that nobody needs grow. */
    private void drift(Limited l, Window w, long length) {
        if (w.bound * 10 >= length || l.limit == ledger.config.workers()) {
            l.quietFor = 0;
        } else if (w.area > 0 && w.done == 0) {
            return; // what has yet to come back says nothing
        } else if (++l.quietFor == 5) {
            l.quietFor = 0;
            ledger.setLimit(l, l.limit + 1, "unused");
        }
    }

    private void conclude(Limited l, Sample s) {
        boolean dipped = l.dip;
        l.dip = false;
        if (s.done < SAMPLE_DONE) return;
        Point p = s.point(ledger.config.window());
        l.samples++;
        regime(l, p);
        if (p.n() >= 500) {
            if (l.ring.size() == RING) l.ring.removeFirst();
            l.ring.addLast(p);
        }
        if (undo(l, p) || cut(l, s) || !p.full() || dipped || fit(l)) return;
        if (s.good * 10 >= s.done * 9 && room(l, p)) return;
        excite(l);
    }

    /** Forgets the ring when three samples in a row hold workers twice as long, or half as long, as it tells. */
    private static void regime(Limited l, Point p) {
        if (l.ring.size() < 4) {
            l.misfits = 0;
            return;
        }
        long n = 0;
        long done = 0;
        for (Point q : l.ring) {
            n += q.n();
            done += q.done();
        }
        // Beyond the knee requests take longer in proportion to n, which is no change.
        long before = n * 1000 / done;
        long now = p.n() * 1000 / Math.max(1, p.done());
        long scaled = before * p.n() / (n / l.ring.size());
        boolean fits = now < 2 * Math.max(before, scaled) && 2 * now > Math.min(before, scaled);
        l.misfits = fits ? 0 : l.misfits + 1;
        if (l.misfits < 3) return;
        l.misfits = 0;
        l.ring.clear();
    }

    /** Judges a cut by the first sample after it. */
    private boolean undo(Limited l, Point p) {
        if (l.cutFrom == 0) return false;
        long from = l.cutFrom;
        l.cutFrom = 0;
        if (p.good() * 10 >= l.cutGood * 9) {
            l.cutPause = 0;
            return false;
        }
        l.cutPause = Math.min(Math.max(PAUSE_FIRST, 2 * l.cutPause), PAUSE_LONGEST);
        l.noCutUntil = ledger.now + l.cutPause;
        ledger.setLimit(l, (l.limit + from + 1) / 2, "undo");
        return true;
    }

    /** Shrinks the limit to what the downstream serves in half of the target, when what comes back is late. */
    private boolean cut(Limited l, Sample s) {
        if (!l.timely || s.good * 4 >= s.done * 3 || ledger.now < l.noCutUntil) {
            forgetLate(l);
            return false;
        }
        l.late++;
        l.lateDone += s.done;
        l.lateTime += s.length;
        if (l.late == 1 && s.good > 0) return false;
        long to = Math.max(LEAST, (l.lateDone * (l.target / 2) + l.lateTime - 1) / l.lateTime);
        if (to >= l.limit && l.late >= 4) to = Math.max(LEAST, l.limit * 7 / 8);
        if (to >= l.limit) return false;
        forgetLate(l);
        l.cutFrom = l.limit;
        l.cutGood = s.good * 1000 * ledger.config.window() / s.length;
        ledger.setLimit(l, to, "late");
        l.coolTill = ledger.now + s.area / s.done;
        return true;
    }

    private static void forgetLate(Limited l) {
        l.late = 0;
        l.lateDone = 0;
        l.lateTime = 0;
    }

    private static List<Point> fullPoints(Limited l) {
        return l.ring.stream().filter(Point::full).toList();
    }

    /** Moves the limit towards the smallest concurrency on the plateau. */
    private boolean fit(Limited l) {
        if (l.samples % FIT_EVERY != 0) return false;
        List<Point> full = fullPoints(l);
        if (full.size() < ENOUGH || !Fit.spread(full)) return false;
        if (Fit.falling(full)) {
            ledger.setLimit(l, l.limit * 4 / 5, "thrash");
            return true;
        }
        Fit.Knee k = Fit.knee(full);
        l.knee = k.at();
        long to = k.at() + Math.max(1, k.at() / 4);
        if (k.rising() || to >= l.limit) return false;
        ledger.setLimit(l, Math.max(to, l.limit - Math.max(1, l.limit / 4)), "knee");
        return true;
    }

    /** Raises a limit that binds while requests hold their workers no longer than they do at lower concurrency. */
    private boolean room(Limited l, Point p) {
        long n = 0;
        long done = 0;
        for (Point q : l.ring) {
            if (q.n() * 4 > p.n() * 3) continue;
            n += q.n();
            done += q.done();
        }
        if (done == 0 || p.n() * done * 5 > n * p.done() * 6) return false;
        ledger.setLimit(l, l.limit + Math.max(1, l.limit / 2), "room");
        return true;
    }

    /** Makes a difference to learn from. */
    private void excite(Limited l) {
        if (ledger.config.without().excite()) return;
        List<Point> full = fullPoints(l);
        if (full.size() >= 8 && l.samples - l.lastDip >= 16 && !Fit.spread(full)) {
            l.dip = true;
            l.lastDip = l.samples;
        } else if (l.samples % 4 == 0) {
            ledger.setLimit(l, l.limit + 1, "probe");
        }
    }
}
