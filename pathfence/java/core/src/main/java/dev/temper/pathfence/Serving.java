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
    private static final ThreadLocal<Serving> HERE = new ThreadLocal<>();

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
        Serving before = HERE.get();
        HERE.set(this);
        return () -> HERE.set(before);
    }

    /**
     * What this thread serves.
     *
     * @return nothing outside of any request
     */
    public static Optional<Serving> here() {
        return Optional.ofNullable(HERE.get());
    }

    /**
     * Tells the fence of the request that this thread serves which edge it uses, and says what to send on.
     *
     * @param edge the edge
     * @return outside of any request it says nothing
     */
    public static PathContext calls(String edge) {
        Serving s = HERE.get();
        if (s == null) return PathContext.NONE;
        s.permit.edge(edge);
        return s.onward();
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
