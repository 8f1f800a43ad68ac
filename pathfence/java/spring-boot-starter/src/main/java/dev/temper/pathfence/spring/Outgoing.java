// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.spring;

import dev.temper.pathfence.PathContext;
import dev.temper.pathfence.Permit;
import dev.temper.pathfence.Serving;
import java.net.URI;
import java.util.Optional;
import java.util.function.BiConsumer;

/** What clients do for the request that their thread serves: they say which edge it uses, and send on what travels with it. */
final class Outgoing {
    /** The header of a refusal, with its reason. */
    static final String SHED = "x-pf-shed";
    private static final int FAILED = 500;

    private final Edges edges;
    private final Peers peers;
    private final Within within;

    Outgoing(Edges edges, Peers peers, Within within) {
        this.edges = edges;
        this.peers = peers;
        this.within = within;
    }

    /**
     * Notes a call of the request that this thread serves.
     *
     * @param to what is called
     * @return to be sent, each time that it is tried
     */
    Noted calls(URI to) {
        var onward = Serving.calls(edges.of(to));
        boolean peer = peers.have(to);
        boolean ours = peer || Peers.isLoopback(to);
        return new Noted(
                peer ? onward : PathContext.NONE,
                ours ? Serving.here().map(Serving::permit) : Optional.empty(),
                within);
    }

    /** A call, with what it sends on, and the permit of who makes it where it may come back to this process. */
    record Noted(PathContext onward, Optional<Permit> caller, Within within) {
        /**
         * Writes its headers.
         *
         * @param header takes them
         * @return to be run once it is answered, or has failed
         */
        Runnable send(BiConsumer<String, String> header) {
            onward.writeHttp(header);
            if (caller.isEmpty()) return () -> {};
            String name = within.name(caller.get());
            header.accept(Within.HEADER, name);
            return () -> within.forget(name);
        }
    }

    /**
     * What a peer's refusal is thrown as. Nobody else's is one.
     *
     * @param by what was called
     * @param status its answer's
     * @param shed what its answer has as the header
     * @return nothing where it did not refuse
     */
    Optional<ShedDownstreamException> refusal(URI by, int status, String shed) {
        if (shed == null || status < FAILED || !peers.have(by)) return Optional.empty();
        return Optional.of(new ShedDownstreamException(edges.of(by), shed));
    }
}
