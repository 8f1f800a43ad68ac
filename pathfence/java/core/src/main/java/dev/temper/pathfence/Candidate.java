// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence;

import java.util.HashSet;
import java.util.Set;

/** A key whose edges are being learned. */
final class Candidate {
    final String key;
    final Set<String> edges = new HashSet<>();
    /** Completions since the last new edge. */
    long quiet;

    long touched;
    /** The class of its set of edges, once it is learned. */
    PathClass of;

    Candidate(String key, long touched) {
        this.key = key;
        this.touched = touched;
    }
}
