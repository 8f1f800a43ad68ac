// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.spring;

import dev.temper.pathfence.Permit;
import java.security.SecureRandom;
import java.util.Base64;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Calls of this process to itself. Whoever makes one holds a worker until it is answered, so it runs as a part of the
 * request that makes it. A call has a name, which is good for one arrival and until the call is over: whoever else gets to
 * know it can do nothing with it.
 */
final class Within {
    /** The header with the name. */
    static final String HEADER = "x-pf-within";

    private static final int NAME = 16;

    private final SecureRandom random = new SecureRandom();
    private final Map<String, Caller> calls = new ConcurrentHashMap<>();

    /**
     * Who calls.
     *
     * @param permit its permit; 0: nobody of this process
     * @param depth how many requests of this process wait for the call, its caller included
     */
    record Caller(long permit, long depth) {
        static final Caller NOBODY = new Caller(0, 0);
    }

    /**
     * A name for a call that is made now.
     *
     * @param caller the permit of the request that makes it
     * @return to be forgotten when it is over
     */
    String name(Permit caller) {
        byte[] bytes = new byte[NAME];
        random.nextBytes(bytes);
        String name = Base64.getUrlEncoder().withoutPadding().encodeToString(bytes);
        calls.put(name, new Caller(caller.id(), caller.depth() + 1));
        return name;
    }

    void forget(String name) {
        calls.remove(name);
    }

    /** Who has made the call that arrives with a name; the name means nothing from then on. */
    Caller take(String name) {
        Caller caller = name == null ? null : calls.remove(name);
        return caller == null ? Caller.NOBODY : caller;
    }

    /** How many calls have not arrived, and are not over. */
    int underWay() {
        return calls.size();
    }
}
