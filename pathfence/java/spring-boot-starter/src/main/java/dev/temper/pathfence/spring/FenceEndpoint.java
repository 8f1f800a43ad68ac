// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.spring;

import dev.temper.pathfence.ClassState;
import dev.temper.pathfence.Fence;
import java.util.List;
import org.springframework.boot.actuate.endpoint.annotation.Endpoint;
import org.springframework.boot.actuate.endpoint.annotation.ReadOperation;
import org.springframework.boot.actuate.endpoint.annotation.WriteOperation;

/** {@code /actuator/pathfence}: what the fence does, and its off switch. */
@Endpoint(id = "pathfence")
public final class FenceEndpoint {
    private static final System.Logger LOG = System.getLogger(FenceEndpoint.class.getName());

    private final Fence fence;

    FenceEndpoint(Fence fence) {
        this.fence = fence;
    }

    /**
     * What the fence does.
     *
     * @param off whether it is switched off
     * @param workers the pool
     * @param inFlight the workers that are taken
     * @param waiting the requests that wait
     * @param watchError why the watched file is not in force, or null
     * @param classes each class, with the reason of its limit's last change
     */
    public record State(
            boolean off, long workers, long inFlight, long waiting, String watchError, List<ClassState> classes) {}

    /**
     * Looks.
     *
     * @return the state
     */
    @ReadOperation
    public State state() {
        return new State(
                fence.config().off(),
                fence.config().workers(),
                fence.inFlight(),
                fence.waiting(),
                fence.watchError().orElse(null),
                fence.states());
    }

    /**
     * Switches the fence off, as if there were none, or on.
     *
     * @param off whether it is to be off
     * @return the state afterwards
     */
    @WriteOperation
    public State off(boolean off) {
        fence.off(off);
        if (off) LOG.log(System.Logger.Level.WARNING, "PathFence is switched off: the server serves what it has threads for");
        else LOG.log(System.Logger.Level.INFO, "PathFence is in force");
        return state();
    }
}
