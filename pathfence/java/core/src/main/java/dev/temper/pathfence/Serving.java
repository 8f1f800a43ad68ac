// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence;

import java.util.Optional;

/**
 * The request that a thread serves, for client code further down: which edges it uses, and what is sent on.
 *
 * <pre>{@code
 * try (Serving.Scope here = serving.enter()) {
 *     handle();
 * }
 * }</pre>
 */
public final class Serving {
    private static final ThreadLocal<Here> HERE = new ThreadLocal<>();
    private static final Scope NOTHING = () -> {};

    /** What a thread does. */
    private static final class Here {
        final Serving serving;
        /** How many of its calls are under way, one within the other. */
        int calls;

        Here(Serving serving) {
            this.serving = serving;
        }

        void tell(String edge) {
            if (calls <= 0) serving.permit.edge(edge);
        }

        Scope call() {
            calls++;
            return () -> calls--;
        }
    }

    private final Permit permit;
    private final PathContext context;
    private final String service;
    private final long since;

    /**
     * A request that was granted.
     *
     * @param permit its permit
     * @param context what it came with
     * @param service this service's name in visits; empty: none is added
     * @param since when it came, by System.nanoTime(): its wait for a worker is time that it has used
     */
    public Serving(Permit permit, PathContext context, String service, long since) {
        this.permit = permit;
        this.context = context;
        this.service = service;
        this.since = since;
    }

    /** Ends what {@link Serving#enter} began, on the same thread. */
    public interface Scope extends AutoCloseable {
        @Override
        void close();
    }

    /**
     * From now on this thread serves the request.
     *
     * @return close it to go back to what was before
     */
    public Scope enter() {
        Here before = HERE.get();
        HERE.set(new Here(this));
        return () -> HERE.set(before);
    }

    /**
     * What this thread serves.
     *
     * @return nothing outside of any request
     */
    public static Optional<Serving> here() {
        return Optional.ofNullable(HERE.get()).map(h -> h.serving);
    }

    /**
     * Tells the fence of the request that this thread serves which edge it uses, and says what to send on. Within
     * {@link #within another call} the fence is not told.
     *
     * @param edge the edge
     * @return outside of any request it says nothing
     */
    public static PathContext calls(String edge) {
        Here h = HERE.get();
        if (h == null) return PathContext.NONE;
        h.tell(edge);
        return h.serving.onward();
    }

    /**
     * A call, for a client that nothing else sees:
     *
     * <pre>{@code
     * try (Serving.Scope call = Serving.calling("search")) {
     *     return client.search(text);
     * }
     * }</pre>
     *
     * What other clients call meanwhile on this thread is a part of it.
     *
     * @param edge what is called
     * @return close it on the same thread once the call is over
     */
    public static Scope calling(String edge) {
        Here h = HERE.get();
        if (h == null) return NOTHING;
        h.tell(edge);
        return h.call();
    }

    /**
     * A call that the fence has been told of, where the client goes on with it: what this thread calls meanwhile is a part
     * of it, and no edge of its own. A client stands on another, so that several see the same call, each by its own name.
     *
     * @return close it on the same thread
     */
    public static Scope within() {
        Here h = HERE.get();
        return h == null ? NOTHING : h.call();
    }

    /**
     * Its permit.
     *
     * @return the permit
     */
    public Permit permit() {
        return permit;
    }

    /**
     * What the request should send on to services that it calls.
     *
     * @return with what is left of its time
     */
    public PathContext onward() {
        return context.onward(service, System.nanoTime() - since);
    }

    /**
     * Serves the request on another thread, too.
     *
     * @param task what runs there
     * @return what to run
     */
    public Runnable wrap(Runnable task) {
        return () -> {
            try (Scope s = enter()) {
                task.run();
            }
        };
    }
}
