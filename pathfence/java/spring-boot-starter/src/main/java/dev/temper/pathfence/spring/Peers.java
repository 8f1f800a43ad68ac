// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.spring;

import java.net.URI;
import java.util.List;
import java.util.Locale;

/** Which hosts are services of one's own: they are sent what travels with a request, and believed when they refuse. */
final class Peers {
    private final List<String> names;

    /**
     * @param names hosts, with or without a port; {@code *.shop.svc} is every host below {@code shop.svc}
     */
    Peers(List<String> names) {
        this.names = names.stream().map(n -> n.toLowerCase(Locale.ROOT)).toList();
    }

    boolean have(URI uri) {
        if (uri.getHost() == null) return false;
        String host = uri.getHost().toLowerCase(Locale.ROOT);
        String whole = host + ":" + uri.getPort();
        return names.stream().anyMatch(n -> n.equals(host) || n.equals(whole) || n.startsWith("*.") && host.endsWith(n.substring(1)));
    }

    /** Whether it may be this process itself, by its address. No name is looked up. */
    static boolean isLoopback(URI uri) {
        String host = uri.getHost();
        return host != null && (host.equalsIgnoreCase("localhost") || host.equals("[::1]") || host.matches("127(\\.[0-9]{1,3}){3}"));
    }
}
