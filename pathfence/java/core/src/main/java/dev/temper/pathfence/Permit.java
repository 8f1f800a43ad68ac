// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence;

import dev.temper.pathfence.internal.Names;
import java.util.List;

/**
 * The right to hold a worker. It is given back once: by {@link #release}, or by {@link #close} as a failure, so that no
 * exception can lose it or count as a success:
 *
 * <pre>{@code
 * try (Permit permit = fence.acquire(call)) {
 *     serve();
 *     permit.release(Outcome.OK);
 * }
 * }</pre>
 *
 * Whatever comes after the first of these does nothing. Any thread may use a permit.
 */
public final class Permit implements AutoCloseable {
    private final Fence fence;
    private final long id;
    private final PathClass of;
    private final long depth;
    private boolean released; // the fence's lock guards it
    private volatile boolean told;

    Permit(Fence fence, long id, PathClass of, long depth) {
        this.fence = fence;
        this.id = id;
        this.of = of;
        this.depth = depth;
    }

    /**
     * Gives the worker back.
     *
     * @param outcome how the request ended
     */
    public void release(Outcome outcome) {
        fence.with(new Release(this, outcome));
    }

    /** What {@link #release} does under the lock. */
    private record Release(Permit permit, Outcome outcome) implements Fence.Action {
        @Override
        public List<Decision> on(Core core, long now) {
            if (permit.released) return List.of();
            permit.released = true;
            return core.done(now, permit.id, outcome);
        }
    }

    /** Gives the worker back as a failure, if it is not given back yet. */
    @Override
    public void close() {
        release(Outcome.FAIL);
    }

    /**
     * The request uses a downstream edge: how classes are learned, and which of them are late together. After the end of the
     * request it does nothing. An edge that its class is known to use costs a look, and no lock.
     *
     * @param name the edge; one that is not a valid name is ignored
     */
    public void edge(String name) {
        if (!told) told = Names.valid(name);
        // What a bucket's requests use is of no class yet. Any other class has its edges for good, and a learned key has all
        // of its class's: nothing would follow. A reload that changes the key's class counts from the next request on.
        if (of.unknown || !of.edges.settled(name)) fence.with((core, now) -> core.edge(now, id, name));
    }

    /**
     * Whether anybody has told of an {@link #edge} of the request, through this permit.
     *
     * @return false where all that it calls, if it calls anything, is not seen
     */
    public boolean hasEdge() {
        return told;
    }

    /**
     * A permit for a part of this request on the same pool. The worker counts as free when the last is given back; what
     * counts is this one's outcome.
     *
     * @return the part's permit
     * @throws IllegalStateException after this permit was given back: the part would need a worker of its own
     */
    public Permit share() {
        return fence.share(this);
    }

    PathClass of() {
        return of;
    }

    boolean released() {
        return released;
    }

    /**
     * Which permit of its fence it is, for {@link Fence#submit(Call, long, java.util.function.Consumer,
     * java.util.function.Consumer)}.
     *
     * @return more than 0; no other permit of the fence ever has it
     */
    public long id() {
        return id;
    }

    /**
     * How often the request's chain of calls had been in this service before.
     *
     * @return as its call said
     */
    public long depth() {
        return depth;
    }

    /**
     * The class of the request.
     *
     * @return its name
     */
    public String className() {
        return of.name;
    }

    @Override
    public String toString() {
        return "permit " + id + " of class " + of.name;
    }
}
