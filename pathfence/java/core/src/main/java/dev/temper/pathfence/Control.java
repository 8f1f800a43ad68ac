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
    private boolean stood; // in this window nothing was heard for half of one
    private boolean stoodBefore; // in the one before

    Control(Ledger ledger, Lending lending) {
        this.ledger = ledger;
        this.lending = lending;
    }

    void emptySamples() {
        for (PathClass c : ledger.classes) {
            c.touch(ledger.now);
            c.sample = new Sample();
        }
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
        for (PathClass c : ledger.classes) {
            c.touch(ledger.now);
            Window w = c.window;
            c.window = new Window(ledger.now);
            if (!valid) {
                c.usual.drop();
                c.others.drop();
                c.sample = new Sample();
                continue;
            }
            keepPeaks(c, w, length);
            if (!ledger.config.off()) learn(c, w, length);
        }
        lending.shareOut();
        if (valid && !ledger.config.off()) lending.panicRule();
    }

    /**
     * Takes the window's peaks into the memory. The class's own counts only if it got what it asked for, and gave back
     * about as much as it took: else it is the wait that made the demand.
     */
    private void keepPeaks(PathClass c, Window w, long length) {
        c.others.keep();
        if (w.queued * 10 < length && w.done * 4 + 8 >= w.arrivals * 3) {
            c.usual.keep();
            c.alarmed = false;
        } else {
            c.usual.drop();
        }
        c.turnNow = w.done * 1000;
        c.turn += (c.turnNow - c.turn) / 4;
        c.level += (w.area * 1000 / length - c.level) / 4;
    }

    private void learn(PathClass c, Window w, long length) {
        if (c.unknown || ledger.config.without().learn()) return;
        c.sample.add(w, length);
        drift(c, w, length);
        if (c.sample.done < SAMPLE_DONE && c.sample.windows < SAMPLE_WINDOWS) return;
        Sample full = c.sample;
        c.sample = new Sample();
        if (ledger.now - full.length >= c.coolTill) conclude(c, full);
    }

    /** Lets a limit that nobody needs grow. */
    private void drift(PathClass c, Window w, long length) {
        if (w.limited * 10 >= length || c.limit == ledger.config.workers()) {
            c.quietFor = 0;
        } else if (++c.quietFor == 5) {
            c.quietFor = 0;
            ledger.setLimit(c, c.limit + 1, "unused");
        }
    }

    private void conclude(PathClass c, Sample s) {
        c.touch(ledger.now);
        boolean dipped = c.dip;
        c.dip = false;
        if (s.done < SAMPLE_DONE) return;
        Point p = s.point(ledger.config.window());
        c.samples++;
        regime(c, p);
        if (p.n() >= 500) {
            if (c.ring.size() == RING) c.ring.removeFirst();
            c.ring.addLast(p);
        }
        if (undo(c, p) || cut(c, s) || !p.full() || dipped || fit(c)) return;
        if (s.good * 10 >= s.done * 9 && room(c, p)) return;
        excite(c);
    }

    /** Forgets the ring when three samples in a row hold workers twice as long, or half as long, as it tells. */
    private static void regime(PathClass c, Point p) {
        if (c.ring.size() < 4) {
            c.odd = 0;
            return;
        }
        long n = 0;
        long done = 0;
        for (Point q : c.ring) {
            n += q.n();
            done += q.done();
        }
        // Beyond the knee requests take longer in proportion to n, which is no change.
        long before = n * 1000 / done;
        long now = p.n() * 1000 / Math.max(1, p.done());
        long scaled = before * p.n() / (n / c.ring.size());
        boolean odd = now >= 2 * Math.max(before, scaled) || 2 * now <= Math.min(before, scaled);
        c.odd = odd ? c.odd + 1 : 0;
        if (c.odd < 3) return;
        c.odd = 0;
        c.ring.clear();
    }

    /** Judges a cut by the first sample after it. */
    private boolean undo(PathClass c, Point p) {
        if (c.cutFrom == 0) return false;
        long from = c.cutFrom;
        c.cutFrom = 0;
        if (p.good() * 10 >= c.cutGood * 9) {
            c.cutPause = 0;
            return false;
        }
        c.cutPause = Math.min(Math.max(PAUSE_FIRST, 2 * c.cutPause), PAUSE_LONGEST);
        c.noCut = ledger.now + c.cutPause;
        ledger.setLimit(c, (c.limit + from + 1) / 2, "undo");
        return true;
    }

    /** Shrinks the limit to what the downstream serves in half of the target, when what comes back is late. */
    private boolean cut(PathClass c, Sample s) {
        if (s.good * 4 >= s.done * 3 || ledger.now < c.noCut) {
            forgetLate(c);
            return false;
        }
        c.late++;
        c.lateDone += s.done;
        c.lateTime += s.length;
        if (c.late == 1 && s.good > 0) return false;
        long to = Math.max(LEAST, (c.lateDone * (c.target / 2) + c.lateTime - 1) / c.lateTime);
        if (to >= c.limit && c.late >= 4) to = Math.max(LEAST, c.limit * 7 / 8);
        if (to >= c.limit) return false;
        forgetLate(c);
        c.cutFrom = c.limit;
        c.cutGood = s.good * 1000 * ledger.config.window() / s.length;
        ledger.setLimit(c, to, "late");
        c.coolTill = ledger.now + s.area / s.done;
        return true;
    }

    private static void forgetLate(PathClass c) {
        c.late = 0;
        c.lateDone = 0;
        c.lateTime = 0;
    }

    private static List<Point> fullPoints(PathClass c) {
        return c.ring.stream().filter(Point::full).toList();
    }

    /** Moves the limit towards the smallest concurrency on the plateau. */
    private boolean fit(PathClass c) {
        if (c.samples % FIT_EVERY != 0) return false;
        List<Point> full = fullPoints(c);
        if (full.size() < ENOUGH || !Fit.spread(full)) return false;
        if (Fit.falling(full)) {
            ledger.setLimit(c, c.limit * 4 / 5, "thrash");
            return true;
        }
        Fit.Knee k = Fit.knee(full);
        c.knee = k.at();
        long to = k.at() + Math.max(1, k.at() / 4);
        if (k.rising() || to >= c.limit) return false;
        ledger.setLimit(c, Math.max(to, c.limit - Math.max(1, c.limit / 4)), "knee");
        return true;
    }

    /** Raises a limit that binds while requests hold their workers no longer than they do at lower concurrency. */
    private boolean room(PathClass c, Point p) {
        long n = 0;
        long done = 0;
        for (Point q : c.ring) {
            if (q.n() * 4 > p.n() * 3) continue;
            n += q.n();
            done += q.done();
        }
        if (done == 0 || p.n() * done * 5 > n * p.done() * 6) return false;
        ledger.setLimit(c, c.limit + Math.max(1, c.limit / 2), "room");
        return true;
    }

    /** Makes a difference to learn from. */
    private void excite(PathClass c) {
        if (ledger.config.without().excite()) return;
        List<Point> full = fullPoints(c);
        if (full.size() >= 8 && c.samples - c.lastDip >= 16 && !Fit.spread(full)) {
            c.touch(ledger.now);
            c.dip = true;
            c.lastDip = c.samples;
        } else if (c.samples % 4 == 0) {
            ledger.setLimit(c, c.limit + 1, "probe");
        }
    }
}
