// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.thrift;

import dev.temper.pathfence.PathContext;

/**
 * A Thrift method's name with a request's context in front of it: {@code pf!path!deadline!visits!method}.
 *
 * @param method the plain name
 * @param context what stood before it
 */
record ThriftName(String method, PathContext context) {
    private static final int PARTS = 5;

    /**
     * Puts a context in front of a name.
     *
     * @param context what to carry
     * @param method the plain name
     * @return the name for the message
     */
    static String join(PathContext context, String method) {
        return "pf!" + context.path() + "!" + context.deadlineText() + "!" + context.visits() + "!" + method;
    }

    /**
     * Takes a context off a name, also behind a multiplexed service's: {@code service:pf!...}.
     *
     * @param name the name of the message
     * @return the plain name, and what stood before it
     */
    static ThriftName split(String name) {
        int service = name.indexOf(":pf!");
        if (service < 0 && !name.startsWith("pf!")) return new ThriftName(name, PathContext.NONE);
        int from = name.startsWith("pf!") ? 0 : service + 1;
        String[] parts = name.substring(from).split("!", -1);
        if (parts.length != PARTS) return new ThriftName(name, PathContext.NONE);
        return new ThriftName(name.substring(0, from) + parts[4], PathContext.read(parts[1], parts[2], parts[3]));
    }
}
