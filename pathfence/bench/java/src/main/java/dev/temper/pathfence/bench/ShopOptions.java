// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.bench;

import java.util.Iterator;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;

/**
 * What a service of the shop is started with.
 *
 * @param service its name
 * @param workers requests that are at work at a time
 * @param downstreams the services that it calls
 * @param fence its configuration as JSON; empty: without
 * @param admission as {@link Admission#named} knows it; empty: without
 */
record ShopOptions(String service, int workers, Set<String> downstreams, String fence, String admission) {
    private static final List<String> SERVICES = List.of("front", "catalogue", "cart", "orders");

    static ShopOptions parse(String... arguments) {
        Iterator<String> rest = List.of(arguments).iterator();
        String service = rest.hasNext() ? rest.next() : "";
        if (!SERVICES.contains(service)) throw new IllegalArgumentException("the first argument is none of " + SERVICES);
        int workers = 16;
        Set<String> downstreams = new TreeSet<>();
        String fence = "";
        String admission = "";
        while (rest.hasNext()) {
            String option = rest.next();
            if (!rest.hasNext()) throw new IllegalArgumentException(option + " has no value");
            String value = rest.next();
            switch (option) {
                case "--workers" -> workers = Integer.parseInt(value);
                case "--downstream" -> downstreams.add(value);
                case "--fence" -> fence = value;
                case "--admission" -> admission = value;
                default -> throw new IllegalArgumentException("there is no " + option);
            }
        }
        return new ShopOptions(service, workers, downstreams, fence, admission);
    }

    boolean isFront() {
        return service.equals("front");
    }

    /**
     * The server's threads. Where requests are refused on them, a third more than workers: else none would be left for
     * that while all workers are taken. It is what the starter recommends.
     */
    int threads() {
        return fence.isEmpty() && admission.isEmpty() ? workers : workers + (workers + 2) / 3;
    }
}
