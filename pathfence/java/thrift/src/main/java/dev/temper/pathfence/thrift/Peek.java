// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.thrift;

import dev.temper.pathfence.PathContext;
import java.util.HashMap;
import java.util.Map;
import org.apache.thrift.TException;
import org.apache.thrift.protocol.TBinaryProtocol;
import org.apache.thrift.protocol.TCompactProtocol;
import org.apache.thrift.protocol.TField;
import org.apache.thrift.protocol.TMap;
import org.apache.thrift.protocol.TProtocol;
import org.apache.thrift.protocol.TProtocolUtil;
import org.apache.thrift.protocol.TType;
import org.apache.thrift.transport.TMemoryInputTransport;
import org.apache.thrift.transport.TTransportException;

/** Reads what a connection's messages say of themselves, one after the other. */
final class Peek {
    private static final byte COMPACT = (byte) 0x82;

    private final Listener listener;
    private final TMemoryInputTransport memory = new TMemoryInputTransport();
    private final TProtocol binary = new TBinaryProtocol(memory); // it remembers nothing of the message before

    Peek(Listener listener) throws TTransportException {
        this.listener = listener;
    }

    /** Reads a message without its frame's length. Of what is no message nothing is known. */
    Incoming at(byte[] bytes, int size) {
        ThriftName name = new ThriftName("", PathContext.NONE);
        try {
            memory.reset(bytes, 0, size);
            TProtocol in = size > 0 && bytes[0] == COMPACT ? new TCompactProtocol(memory) : binary;
            name = ThriftName.split(in.readMessageBegin().name);
            if (listener.carrier())
                name = new ThriftName(name.method(), name.context().or(PathContext.read(carrier(in))));
        } catch (TException | RuntimeException e) {
            // What was read up to here is what is known; the server itself will say what is wrong with the message.
            return Incoming.of(name, listener);
        }
        return Incoming.of(name, listener);
    }

    /** Looks for a map of strings among a method's arguments; the last one counts. */
    private static Map<String, String> carrier(TProtocol in) throws TException {
        Map<String, String> found = Map.of();
        in.readStructBegin();
        for (TField f = in.readFieldBegin(); f.type != TType.STOP; f = in.readFieldBegin()) {
            if (f.type == TType.MAP) {
                TMap m = in.readMapBegin();
                boolean strings = m.size > 0 && m.keyType == TType.STRING && m.valueType == TType.STRING;
                Map<String, String> read = entries(in, m, strings);
                if (strings) found = read;
                in.readMapEnd();
            } else {
                TProtocolUtil.skip(in, f.type);
            }
            in.readFieldEnd();
        }
        return found;
    }

    private static Map<String, String> entries(TProtocol in, TMap m, boolean strings) throws TException {
        Map<String, String> out = new HashMap<>();
        for (int i = 0; i < m.size; i++) {
            if (!strings) {
                TProtocolUtil.skip(in, m.keyType);
                TProtocolUtil.skip(in, m.valueType);
                continue;
            }
            String key = in.readString();
            String value = in.readString();
            if (key.startsWith("pf.")) out.putIfAbsent(key, value);
        }
        return out;
    }
}
