// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.thrift;

import dev.temper.pathfence.Call;
import dev.temper.pathfence.PathContext;
import dev.temper.pathfence.internal.Names;

/**
 * What a request said, as far as its listener lets it.
 *
 * @param method the plain name, or empty
 * @param context what came with it
 * @param call what the fence is asked for
 */
record Incoming(String method, PathContext context, Call call) {
    static final Incoming NOTHING = new Incoming("", PathContext.NONE, Call.of(""));

    static Incoming of(ThriftName name, Listener listener) {
        PathContext context = listener.trusted() ? name.context() : name.context().untrusted();
        String key = listener.keys().getOrDefault(name.method(), name.method());
        if (context.path().isEmpty() && Names.valid(key)) context = context.withPath(key);
        return new Incoming(name.method(), context, context.call(listener.service(), listener.trusted()));
    }

    /** What travels on with it. */
    PathContext onward(Listener listener) {
        return listener.trusted() ? context : context.withoutTime();
    }
}
