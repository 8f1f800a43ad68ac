// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.thrift;

import java.util.Map;

/**
 * How a server reads what its peers send.
 *
 * @param service this service's name in visits; empty: re-entry is not seen
 * @param trusted whether peers may choose keys and depths
 * @param carrier whether to look for the three values in a method's {@code map<string,string>}
 * @param keys from a method's name to its key; without an entry the name is the key
 */
public record Listener(String service, boolean trusted, boolean carrier, Map<String, String> keys) {
    /** Copies the keys. */
    public Listener {
        keys = Map.copyOf(keys);
    }

    /**
     * A listener whose methods' names are the keys.
     *
     * @param service this service's name in visits
     * @param trusted whether peers may choose keys and depths
     * @return the listener
     */
    public static Listener of(String service, boolean trusted) {
        return new Listener(service, trusted, false, Map.of());
    }
}
