// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.thrift;

import dev.temper.pathfence.Outcome;
import dev.temper.pathfence.Permit;

/** What a worker has been given to serve; its processor, on the same thread, says how it went. */
final class Job implements Runnable {
    private static final ThreadLocal<Job> HERE = new ThreadLocal<>();

    final Incoming incoming;
    /** When it came, by System.nanoTime(). */
    final long since;
    /** Why it was refused, or null. */
    String refused;
    /** The permit of one that was granted, or null. */
    Permit permit;
    /** A message that no processor took says nothing of a downstream. */
    Outcome outcome = Outcome.CANCEL;

    private final Runnable task;

    Job(Incoming incoming, long since, Runnable task) {
        this.incoming = incoming;
        this.since = since;
        this.task = task;
    }

    /** What a worker is given of a request that was granted. */
    Job with(Permit given) {
        permit = given;
        return this;
    }

    /** What is given to who answers requests that were refused. */
    Job refused(String reason) {
        refused = reason;
        return this;
    }

    /** The job of this thread, or null. */
    static Job here() {
        return HERE.get();
    }

    @Override
    public void run() {
        HERE.set(this);
        try {
            task.run();
        } finally {
            HERE.set(null);
            if (permit != null) permit.release(outcome);
        }
    }
}
