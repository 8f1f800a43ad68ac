// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** Classes that are late, and which of them are so together: {@link Group}. */
final class Suspects {
    private static final long DOUBTFUL = 2; // completions in a row that are no good: that is hardly chance
    private static final long CALM_WINDOWS = 10; // with nothing late, nor kept from it by a group

    private final Ledger ledger;

    Suspects(Ledger ledger) {
        this.ledger = ledger;
    }

    /** Requests of a class use an edge. */
    void uses(PathClass c, String edge) {
        if (c.edges.add(edge) && c.suspect) regroup();
    }

    /** Looks at a completion. */
    void judge(PathClass c, boolean good) {
        if (good) {
            c.misses = 0;
            return;
        }
        c.misses++;
        c.calm = 0;
        if (c.misses >= DOUBTFUL) mistrust(c);
    }

    /** Makes a class a suspect. */
    void mistrust(PathClass c) {
        c.calm = 0;
        if (c.suspect || c.unknown || !ledger.learns()) return;
        c.suspect = true;
        regroup();
    }

    /** Lowers the limit of a group of which a member has stalled to twice what they hold together at other times. */
    void contain(Group g) {
        g.touch(ledger.now);
        ledger.setLimit(g, Math.min(g.limit, 2 * g.level() / 1000 + 4), "stall");
    }

    /** A window is over: classes that were calm for long are suspects no more. */
    void acquit() {
        boolean fewer = false;
        for (PathClass c : ledger.classes) {
            c.calm++;
            if (!c.suspect || c.calm < CALM_WINDOWS) continue;
            c.suspect = false;
            fewer = true;
        }
        if (fewer) regroup();
    }

    /**
     * Divides the suspects: those that use the edge that most of them use are one group, and so on. An edge's group stays
     * the same one while the edge has one.
     */
    private void regroup() {
        for (PathClass c : ledger.classes) c.touch(ledger.now);
        List<PathClass> left = new ArrayList<>();
        for (PathClass c : ledger.classes) {
            c.group = null;
            if (c.suspect) left.add(c);
        }
        List<Group> before = ledger.groups;
        ledger.groups = new ArrayList<>();
        for (String edge = commonest(left); edge != null; edge = commonest(left)) {
            Group g = groupOf(edge, before);
            ledger.groups.add(g);
            for (Iterator<PathClass> i = left.iterator(); i.hasNext(); ) {
                PathClass c = i.next();
                if (!c.edges.names().contains(edge)) continue;
                g.add(c);
                i.remove();
            }
        }
    }

    /** The edge that most of the classes use, the first by name of equals; null where no two use the same. */
    private static String commonest(List<PathClass> classes) {
        Map<String, Integer> users = new TreeMap<>();
        for (PathClass c : classes) for (String edge : c.edges.names()) users.merge(edge, 1, Integer::sum);
        String best = null;
        int most = 1;
        for (Map.Entry<String, Integer> e : users.entrySet()) {
            if (e.getValue() <= most) continue;
            best = e.getKey();
            most = e.getValue();
        }
        return best;
    }

    /** An edge's group, without members: the one that it had before, or a new one. */
    private Group groupOf(String edge, List<Group> before) {
        for (Group g : before) {
            if (!g.edge.equals(edge)) continue;
            g.clear();
            return g;
        }
        return new Group(edge, ledger.config.workers(), ledger.now);
    }
}
