// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.spring;

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
     * Notes a call.
     *
     * @param to what is called
     * @param header takes the headers to send
     */
    void calls(URI to, BiConsumer<String, String> header) {
        var onward = Serving.calls(edges.of(to));
        boolean peer = peers.have(to);
        if (peer) onward.writeHttp(header);
        if (peer || Peers.isLoopback(to)) within.write(header);
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
