// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence;

import java.util.ArrayList;
import java.util.List;

/** Classes that use an edge, all of them suspects: those that are late together have a limit together. */
final class Group extends Limited {
    final String edge;
    private final List<PathClass> members = new ArrayList<>();

    Group(String edge, long limit, long now) {
        super("~edge:" + edge, now);
        this.edge = edge;
        this.limit = limit;
    }

    /** Lets go of all members; the sums have to be up to now. */
    void clear() {
        members.clear();
        inFlight = 0;
    }

    void add(PathClass c) {
        if (members.isEmpty() || c.target < target) target = c.target;
        members.add(c);
        inFlight += c.inFlight;
        timely = timely || c.timely;
        c.group = this;
    }

    /** Whether the members have all that they may have. */
    boolean full() {
        return inFlight >= cap();
    }

    /**
     * Something of the members has waited for the group's limit: none of them is calm. But for one whose requests take less
     * than half as long as the group's, which is not what is slow.
     */
    void keptBack() {
        for (PathClass c : members) if (2 * c.hold >= hold) c.calm = -1; // acquit() counts the window that ends
    }

    /** How many workers the members hold at other times, in thousandths. */
    long level() {
        long sum = 0;
        for (PathClass c : members) sum += c.level;
        return sum;
    }

    @Override
    void touch(long now) {
        boolean waited = false;
        for (PathClass c : members) waited = waited || !c.queue.isEmpty();
        touch(now, waited);
    }
}
