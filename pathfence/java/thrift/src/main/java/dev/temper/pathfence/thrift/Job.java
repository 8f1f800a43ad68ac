// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.thrift;

import dev.temper.pathfence.Outcome;
import dev.temper.pathfence.Permit;

/** What a worker has been given to serve; its processor, on the same thread, says how it went. */
final class Job {
    private static final ThreadLocal<Job> HERE = new ThreadLocal<>();

    final Incoming incoming;
    /** When it came, by System.nanoTime(). */
    final long since;
    /** Why it was refused, or null. */
    final String refused;
    /** The permit of one that was granted. */
    final Permit permit;
    /** A message that no processor took says nothing of a downstream. */
    Outcome outcome = Outcome.CANCEL;

    Job(Incoming incoming, long since, String refused, Permit permit) {
        this.incoming = incoming;
        this.since = since;
        this.refused = refused;
        this.permit = permit;
    }

    /** The job of this thread, or null. */
    static Job here() {
        return HERE.get();
    }

    void run(Runnable task) {
        HERE.set(this);
        try {
            task.run();
        } finally {
            HERE.remove();
            if (permit != null) permit.release(outcome);
        }
    }
}
