// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence;

import java.util.HashSet;
import java.util.Set;

/** The downstream edges that a class's requests use. Whoever holds the fence's lock writes them, anybody reads. */
final class Edges {
    /** Of a class, and of a key; more are not told apart. */
    static final int MOST = 8;

    /** Never changed, but replaced by a larger set. Written by add() alone. */
    private volatile Set<String> names;

    Edges(Set<String> names) {
        this.names = Set.copyOf(names);
    }

    Set<String> names() {
        return names;
    }

    /**
     * Whether nothing would follow from it that a request uses this edge. Partner: {@link #add}. Takes no lock: a set that
     * is not the newest lacks an edge at worst, and then it is the lock's holder who finds out.
     */
    boolean settled(String edge) {
        Set<String> now = names;
        return now.size() == MOST || edge != null && now.contains(edge);
    }

    /** Adds one; false if nothing has changed. Under the fence's lock. Partner: {@link #settled}, which may run meanwhile. */
    boolean add(String edge) {
        if (settled(edge)) return false;
        Set<String> larger = new HashSet<>(names);
        larger.add(edge);
        names = Set.copyOf(larger);
        return true;
    }
}
