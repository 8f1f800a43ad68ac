// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence;

import dev.temper.pathfence.internal.Names;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;

/** From a key to a class. The specification's "Classes". */
final class Keys {
    private static final int MAX_KEYS = 256; // that are learned, and as many that are being learned
    private static final long LEARN_AFTER = 8;
    private static final int MOST_SHOWN = 16; // of one class
    private static final long CANDIDATE_LIFE = 1_000_000_000;

    private final Ledger ledger;
    private final Lending lending;
    private final Suspects suspects;
    private final Map<String, PathClass> configured = new HashMap<>();
    private final Map<String, Candidate> learned = new HashMap<>();
    private final Candidate[] candidates = new Candidate[MAX_KEYS];
    private final Map<Set<String>, PathClass> footprints = new HashMap<>();

    Keys(Ledger ledger, Lending lending, Suspects suspects) {
        this.ledger = ledger;
        this.lending = lending;
        this.suspects = suspects;
    }

    /** Forgets which keys the configuration lists. */
    void clearConfigured() {
        configured.clear();
    }

    void configure(String key, PathClass c) {
        configured.put(key, c);
    }

    PathClass classOf(String key) {
        PathClass c = configured.get(key); // what is configured or learned is valid
        if (c != null) return c;
        Candidate k = learned.get(key);
        if (k != null) return k.of;
        if (!Names.valid(key)) return ledger.classes.get(0);
        return ledger.classes.get((int) Long.remainderUnsigned(fnv1a(key), ledger.buckets));
    }

    /** The keys that are known to be of each class, the first by name. */
    Map<PathClass, List<String>> shown() {
        Set<String> all = new TreeSet<>(configured.keySet());
        all.addAll(learned.keySet());
        for (Candidate k : candidates) if (k != null) all.add(k.key);
        Map<PathClass, List<String>> of = new HashMap<>();
        for (String key : all) {
            List<String> keys = of.computeIfAbsent(classOf(key), c -> new ArrayList<>());
            if (keys.size() < MOST_SHOWN) keys.add(key);
        }
        return of;
    }

    /** The request uses a downstream edge. */
    void edge(Request r, String edge) {
        PathClass c = configured.get(r.key);
        if (c != null) suspects.uses(c, edge);
        else collect(r, edge);
    }

    /** Adds an edge to those of the request's key. */
    private void collect(Request r, String edge) {
        Candidate k = candidateFor(r.key);
        if (k == null || k.edges.size() >= Edges.MOST || !k.edges.add(edge)) return;
        k.quiet = 0;
        if (k.of == null) return;
        // Where no class is left for the larger set, the key stays where it is.
        if (!adopt(k)) k.edges.remove(edge);
    }

    /** Counts a completion of a key that has no class yet. */
    void completed(String key) {
        Candidate k = candidateFor(key);
        if (k == null || k.of != null) return;
        k.touched = ledger.now;
        if (++k.quiet < LEARN_AFTER || learned.size() >= MAX_KEYS || !adopt(k)) return;
        learned.put(key, k);
        candidates[slot(key)] = null;
    }

    /** The entry in which the edges of a key are collected, or null where the key has none. */
    private Candidate candidateFor(String key) {
        if (configured.containsKey(key)) return null;
        Candidate k = learned.get(key);
        if (k != null) return k;
        if (!Names.valid(key)) return null;
        int slot = slot(key);
        k = candidates[slot];
        if (k == null || (!k.key.equals(key) && ledger.now - k.touched >= CANDIDATE_LIFE))
            candidates[slot] = k = new Candidate(key, ledger.now);
        return k.key.equals(key) ? k : null;
    }

    /**
     * What keys of one class have in common: their edges. A key without edges has nothing in common with any other, so it
     * has a class of its own; but the last one that may be learned is for all such that come later.
     */
    private Set<String> footprint(Candidate k) {
        if (!k.edges.isEmpty()) return Set.copyOf(k.edges);
        Set<String> own = ownFootprint(k.key);
        return footprints.containsKey(own) || learnedClasses() < Config.MAX_LEARNED - 1 ? own : Set.of();
    }

    /** No edge has such a name. */
    private static Set<String> ownFootprint(String key) {
        return Set.of("=" + key);
    }

    /** How many there are. */
    int learnedClasses() {
        int count = 0;
        for (PathClass c : ledger.classes) if (c.learned) count++;
        return count;
    }

    /** Gives a candidate its class, made if there is none; false where no more fit. */
    private boolean adopt(Candidate k) {
        Set<String> wanted = footprint(k);
        PathClass known = footprints.get(wanted);
        if (known == null) {
            known = footprints.remove(ownFootprint(k.key)); // what was its own goes with it
            if (known != null) for (String edge : k.edges) suspects.uses(known, edge);
            else known = learn(k, wanted);
            if (known == null) return false;
            footprints.put(wanted, known);
        }
        k.of = known;
        return true;
    }

    /** A class for this footprint, or null where no more fit. */
    private PathClass learn(Candidate k, Set<String> footprint) {
        String name = learnedName(footprint);
        if (learnedClasses() == Config.MAX_LEARNED || ledger.named(name) != null) return null;
        PathClass c = ledger.add(
                new ClassConfig(name, List.of(), Lending.DEFAULT_WEIGHT, ledger.config.target(), 0, 0), k.edges);
        c.learned = true;
        lending.shareOut();
        return c;
    }

    /**
     * What the class of a footprint is called: by that, so that it has the same name in each process of a service, and after each
     * start. Where that is too long, or an edge has a + itself, a hash tells it apart.
     */
    private static String learnedName(Set<String> footprint) {
        String all = joined(footprint, "+");
        if (all.isEmpty()) return "~rest";
        boolean own = all.startsWith("=");
        String name = own ? "~key:" + all.substring(1) : "~calls:" + all;
        boolean clear = own || footprint.stream().noneMatch(edge -> edge.contains("+"));
        if (clear && name.length() <= Names.LONGEST) return name;
        String hash = String.format("~%08x", (int) fnv1a(joined(footprint, ",")));
        return name.substring(0, Math.min(name.length(), Names.LONGEST - hash.length())) + hash;
    }

    private static String joined(Set<String> footprint, String with) {
        return String.join(with, new TreeSet<>(footprint));
    }

    private static int slot(String key) {
        return (int) Long.remainderUnsigned(fnv1a(key) >>> 8, MAX_KEYS);
    }

    /** The 64-bit hash of a valid key, whose characters are its bytes. */
    private static long fnv1a(String key) {
        long h = 0xcbf29ce484222325L;
        for (int i = 0; i < key.length(); i++) h = (h ^ key.charAt(i)) * 1099511628211L;
        return h;
    }
}
