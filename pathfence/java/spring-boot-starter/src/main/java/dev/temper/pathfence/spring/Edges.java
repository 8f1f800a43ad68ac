// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.spring;

import dev.temper.pathfence.internal.Names;
import java.net.URI;
import java.util.Map;

/** From an address to the name of a downstream edge. */
final class Edges {
    private final Map<String, String> names;

    Edges(Map<String, String> names) {
        this.names = names;
    }

    /** The name from the table, by host and port or by host; else host and port themselves. */
    String of(URI uri) {
        String host = uri.getHost() == null ? "" : uri.getHost();
        String whole = uri.getPort() < 0 ? host : host + ":" + uri.getPort();
        String named = names.getOrDefault(whole, names.get(host));
        if (named != null) return named;
        return Names.valid(whole) ? whole : "";
    }

    /** The name of what says itself what it is called; empty where that is no name. */
    String named(String self) {
        if (self == null) return "";
        String named = names.getOrDefault(self, self);
        return Names.valid(named) ? named : "";
    }
}
