// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.thrift;

import dev.temper.pathfence.Serving;
import org.apache.thrift.TException;
import org.apache.thrift.protocol.TMessage;
import org.apache.thrift.protocol.TProtocol;
import org.apache.thrift.protocol.TProtocolDecorator;

/**
 * A client's protocol: writes a request's key, deadline and visits in front of the method's name, and tells the fence of
 * the request that this thread serves which edge it uses. Only for servers that read the prefix. Multiplexing goes around
 * it: {@code new TMultiplexedProtocol(new FencedProtocol(protocol, "posts"), "service")}.
 */
public final class FencedProtocol extends TProtocolDecorator {
    private final String edge;

    /**
     * Wraps a protocol.
     *
     * @param inner the protocol
     * @param edge the name of the downstream edge
     */
    public FencedProtocol(TProtocol inner, String edge) {
        super(inner);
        this.edge = edge;
    }

    @Override
    public void writeMessageBegin(TMessage message) throws TException {
        String name = ThriftName.join(Serving.calls(edge), message.name);
        super.writeMessageBegin(new TMessage(name, message.type, message.seqid));
    }
}
