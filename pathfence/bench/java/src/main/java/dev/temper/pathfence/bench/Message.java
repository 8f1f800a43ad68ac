// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.bench;

import dev.temper.pathfence.Serving;
import dev.temper.pathfence.thrift.FencedProtocol;
import org.apache.thrift.TApplicationException;
import org.apache.thrift.TException;
import org.apache.thrift.TProcessor;
import org.apache.thrift.protocol.TBinaryProtocol;
import org.apache.thrift.protocol.TField;
import org.apache.thrift.protocol.TMessage;
import org.apache.thrift.protocol.TMessageType;
import org.apache.thrift.protocol.TProtocol;
import org.apache.thrift.protocol.TProtocolUtil;
import org.apache.thrift.protocol.TStruct;
import org.apache.thrift.protocol.TType;
import org.apache.thrift.transport.TSocket;
import org.apache.thrift.transport.layered.TFramedTransport;

/**
 * The one kind of call that the benchmark knows, as in cpp/message.h: the method's name is the path, its only argument
 * (1: i64) is how many microseconds the downstream has to work for it, and its result is empty.
 */
final class Message {
    private static final ThreadLocal<Boolean> REFUSING = ThreadLocal.withInitial(() -> false);

    private Message() {}

    /** Work for a path; what it throws becomes the answer. */
    interface Handle {
        void handle(String path, long workMicros) throws TException;
    }

    /** Runs a server's task so that its call is answered as refused. */
    static void refuse(Runnable task) {
        REFUSING.set(true);
        try {
            task.run();
        } finally {
            REFUSING.set(false);
        }
    }

    /** A service without generated code. */
    static TProcessor processor(Handle handle) {
        return (in, out) -> {
            TMessage call = in.readMessageBegin();
            long work = readWork(in);
            in.readMessageEnd();
            TApplicationException failure = null;
            try {
                if (REFUSING.get()) throw new TException("shed");
                handle.handle(call.name, work);
            } catch (TException e) {
                failure = new TApplicationException(TApplicationException.INTERNAL_ERROR, e.getMessage());
            }
            byte type = failure == null ? TMessageType.REPLY : TMessageType.EXCEPTION;
            out.writeMessageBegin(new TMessage(call.name, type, call.seqid));
            if (failure == null) writeEmpty(out);
            else failure.write(out);
            out.writeMessageEnd();
            out.getTransport().flush();
        };
    }

    private static void writeEmpty(TProtocol out) throws TException {
        out.writeStructBegin(new TStruct("result"));
        out.writeFieldStop();
        out.writeStructEnd();
    }

    private static long readWork(TProtocol in) throws TException {
        long work = 0;
        in.readStructBegin();
        for (TField f = in.readFieldBegin(); f.type != TType.STOP; f = in.readFieldBegin()) {
            if (f.id == 1 && f.type == TType.I64) work = in.readI64();
            else TProtocolUtil.skip(in, f.type);
            in.readFieldEnd();
        }
        in.readStructEnd();
        return work;
    }

    /**
     * A connection to a server on this machine; one call at a time. The fence of a request that calls is told so: its port
     * is the edge.
     */
    static final class Connection implements AutoCloseable {
        private final String edge;
        private final TProtocol protocol; // onward, it tells the edge itself
        private final boolean onward;

        /** Told what travels with a request, the server must be one that reads it. */
        Connection(int port, boolean onward) throws TException {
            TSocket socket = new TSocket("127.0.0.1", port);
            socket.open();
            TProtocol plain = new TBinaryProtocol(new TFramedTransport(socket));
            edge = "port-" + port;
            protocol = onward ? new FencedProtocol(plain, edge) : plain;
            this.onward = onward;
        }

        /** Throws what the server answered with, or what the transport said. */
        void call(String path, long workMicros) throws TException {
            if (!onward) Serving.here().ifPresent(s -> s.permit().edge(edge));
            protocol.writeMessageBegin(new TMessage(path, TMessageType.CALL, 0));
            protocol.writeStructBegin(new TStruct("args"));
            protocol.writeFieldBegin(new TField("work_us", TType.I64, (short) 1));
            protocol.writeI64(workMicros);
            protocol.writeFieldEnd();
            protocol.writeFieldStop();
            protocol.writeStructEnd();
            protocol.writeMessageEnd();
            protocol.getTransport().flush();

            TMessage answer = protocol.readMessageBegin();
            TApplicationException failure = null;
            if (answer.type == TMessageType.EXCEPTION) failure = TApplicationException.readFrom(protocol);
            else TProtocolUtil.skip(protocol, TType.STRUCT);
            protocol.readMessageEnd();
            if (failure != null) throw failure;
        }

        @Override
        public void close() {
            protocol.getTransport().close();
        }
    }
}
