// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence;

import java.util.List;

/** The arithmetic of the knee. The specification's "Limit", fit. */
final class Fit {
    private Fit() {}

    /**
     * Where the plateau begins.
     *
     * @param at the number in flight
     * @param rising no plateau shows
     */
    record Knee(long at, boolean rising) {}

    /** Whether the points differ enough in concurrency to tell anything. */
    static boolean spread(List<Point> s) {
        long low = Long.MAX_VALUE;
        long high = Long.MIN_VALUE;
        long sum = 0;
        for (Point p : s) {
            low = Math.min(low, p.n());
            high = Math.max(high, p.n());
            sum += p.n();
        }
        return (high - low) * 4 * s.size() > sum;
    }

    /** Whether goodput falls as concurrency rises: a correlation below -1/2. */
    static boolean falling(List<Point> s) {
        long n = 0;
        long g = 0;
        for (Point p : s) {
            n += p.n();
            g += p.good();
        }
        n /= s.size();
        g /= s.size();
        long scaleN = Math.max(1, n / 100);
        long scaleG = Math.max(1, g / 100);
        long covariance = 0;
        long varianceN = 0;
        long varianceG = 0;
        for (Point p : s) {
            long a = (p.n() - n) / scaleN;
            long b = (p.good() - g) / scaleG;
            covariance += a * b;
            varianceN += a * a;
            varianceG += b * b;
        }
        return covariance < 0 && varianceN > 0 && covariance * covariance / varianceN * 4 > varianceG;
    }

    /** Fits goodput = P min(n/k, 1). */
    static Knee knee(List<Point> s) {
        long top = 0;
        long scale = 1;
        for (Point p : s) {
            top = Math.max(top, p.n());
            scale = Math.max(scale, p.good() / 10_000);
        }
        long last = (top + 999) / 1000;
        long best = 0;
        long least = -1;
        for (long k = 1; k <= last; k++) {
            long error = error(s, k, scale);
            if (least >= 0 && error >= least) continue;
            least = error;
            best = k;
        }
        return new Knee(best, best == last);
    }

    private static long error(List<Point> s, long k, long scale) {
        long yx = 0;
        long xx = 0;
        for (Point p : s) {
            long x = Math.min(p.n() / k, 1000);
            yx += p.good() / scale * x;
            xx += x * x;
        }
        long error = 0;
        for (Point p : s) {
            long e = p.good() / scale - yx * Math.min(p.n() / k, 1000) / xx;
            error += e * e;
        }
        return error;
    }
}
