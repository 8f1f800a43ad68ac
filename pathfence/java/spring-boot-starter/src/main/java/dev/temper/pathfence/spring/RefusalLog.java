// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.spring;

import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Consumer;
import java.util.function.LongSupplier;

/** Tells the log of refusals, at most once a minute for each class. */
final class RefusalLog implements FenceListener {
    private static final long MINUTE = 60_000_000_000L;

    private final LongSupplier clock;
    private final Consumer<String> log;
    private final Map<String, Untold> classes = new ConcurrentHashMap<>();

    /**
     * @param clock nanoseconds
     * @param log takes a line
     */
    RefusalLog(LongSupplier clock, Consumer<String> log) {
        this.clock = clock;
        this.log = log;
    }

    /** A class's refusals since it was told of last. */
    private static final class Untold {
        private long refused;
        private long told = Long.MIN_VALUE;

        /** Counts one; how many are to be told now, or 0. */
        synchronized long count(long now) {
            refused++;
            if (told != Long.MIN_VALUE && now - told < MINUTE) return 0;
            long all = refused;
            refused = 0;
            told = now;
            return all;
        }
    }

    @Override
    public void refused(FencedRequest r, HttpServletRequest request, HttpServletResponse response) {
        long refused = classes.computeIfAbsent(r.className(), name -> new Untold()).count(clock.getAsLong());
        if (refused > 0) log.accept(message(r, refused));
    }

    private static String message(FencedRequest r, long refused) {
        String since = refused == 1 ? "a request" : refused + " requests since the last such line";
        return "PathFence has refused " + since + " of class " + r.className() + ", the last one (" + r.key() + ") as "
                + r.refused() + ". Told once a minute at most; /actuator/pathfence and pathfence.shed have all.";
    }
}
