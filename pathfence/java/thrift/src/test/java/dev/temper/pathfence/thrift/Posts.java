// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.thrift;

import dev.temper.pathfence.Serving;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import org.apache.thrift.TApplicationException;
import org.apache.thrift.TException;
import org.apache.thrift.TProcessor;
import org.apache.thrift.protocol.TField;
import org.apache.thrift.protocol.TMap;
import org.apache.thrift.protocol.TMessage;
import org.apache.thrift.protocol.TMessageType;
import org.apache.thrift.protocol.TProtocol;
import org.apache.thrift.protocol.TProtocolUtil;
import org.apache.thrift.protocol.TStruct;
import org.apache.thrift.protocol.TType;

/** A service as a compiler would make it: each method takes a carrier and gives a string. */
final class Posts implements TProcessor {
    /** Stops the slow method until it is open. */
    final CountDownLatch open = new CountDownLatch(1);

    /** How often a chain of calls comes back to this service. */
    static final int ROUNDS = 2;

    /** Calls this service's method "again". */
    volatile Callable<String> again;

    @Override
    public void process(TProtocol in, TProtocol out) throws TException {
        TMessage m = in.readMessageBegin();
        TProtocolUtil.skip(in, TType.STRUCT);
        in.readMessageEnd();
        if (m.name.equals("fails")) {
            write(out, m, TMessageType.EXCEPTION, new TApplicationException("a method that fails")::write);
            return;
        }
        String result = result(m.name);
        write(out, m, TMessageType.REPLY, to -> {
            to.writeStructBegin(new TStruct("result"));
            to.writeFieldBegin(new TField("success", TType.STRING, (short) 0));
            to.writeString(result);
            to.writeFieldEnd();
            to.writeFieldStop();
            to.writeStructEnd();
        });
    }

    private interface Body {
        void write(TProtocol to) throws TException;
    }

    private static void write(TProtocol out, TMessage m, byte type, Body body) throws TException {
        out.writeMessageBegin(new TMessage(m.name, type, m.seqid));
        body.write(out);
        out.writeMessageEnd();
        out.getTransport().flush();
    }

    private String result(String method) throws TException {
        try {
            if (method.equals("slow") || method.equals("gated")) open.await();
            if (method.equals("gated") || method.equals("again") && depth() < ROUNDS) again.call();
        } catch (Exception e) {
            throw new TException(e);
        }
        if (method.equals("onward")) return Serving.calls("store").withPath("").onward("", 0).visits();
        return method;
    }

    /** How often this chain of calls has been here before: what is sent on counts this visit. */
    private static long depth() {
        return Serving.here().orElseThrow().onward().depth("posts") - 1;
    }

    /** A client's call. */
    static String call(TProtocol p, String method, Map<String, String> carrier) throws TException {
        p.writeMessageBegin(new TMessage(method, TMessageType.CALL, 1));
        p.writeStructBegin(new TStruct("arguments"));
        p.writeFieldBegin(new TField("carrier", TType.MAP, (short) 1));
        p.writeMapBegin(new TMap(TType.STRING, TType.STRING, carrier.size()));
        for (Map.Entry<String, String> e : carrier.entrySet()) {
            p.writeString(e.getKey());
            p.writeString(e.getValue());
        }
        p.writeMapEnd();
        p.writeFieldEnd();
        p.writeFieldStop();
        p.writeStructEnd();
        p.writeMessageEnd();
        p.getTransport().flush();
        TMessage m = p.readMessageBegin();
        if (m.type == TMessageType.EXCEPTION) {
            TApplicationException e = TApplicationException.readFrom(p);
            p.readMessageEnd();
            throw e;
        }
        p.readStructBegin();
        p.readFieldBegin();
        String result = p.readString();
        p.readFieldEnd();
        p.readFieldBegin();
        p.readStructEnd();
        p.readMessageEnd();
        return result;
    }
}
