// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.thrift;

import dev.temper.pathfence.Outcome;
import dev.temper.pathfence.Serving;
import org.apache.thrift.TApplicationException;
import org.apache.thrift.TException;
import org.apache.thrift.TProcessor;
import org.apache.thrift.protocol.TMessage;
import org.apache.thrift.protocol.TMessageType;
import org.apache.thrift.protocol.TProtocol;
import org.apache.thrift.protocol.TProtocolDecorator;
import org.apache.thrift.protocol.TProtocolUtil;
import org.apache.thrift.protocol.TType;
import org.apache.thrift.transport.TTransportException;

/**
 * Behind a {@link FencedExecutor}: answers what was refused, takes the prefix off methods' names, lets client code see
 * the request ({@link Serving}), and notes how it went.
 */
public final class FencedProcessor implements TProcessor {
    private final TProcessor inner;
    private final Listener listener;

    /**
     * Wraps a service's processor, a multiplexed one, too.
     *
     * @param inner the processor
     * @param listener the same as the transport's
     */
    public FencedProcessor(TProcessor inner, Listener listener) {
        this.inner = inner;
        this.listener = listener;
    }

    @Override
    public void process(TProtocol in, TProtocol out) throws TException {
        TMessage plain = plain(in.readMessageBegin());
        Job job = Job.here();
        if (job == null)
            throw new TException("a FencedProcessor needs the server's executorService to be a FencedExecutor");
        if (job.refused != null) {
            refuse(in, out, plain, job.refused);
            return;
        }
        Serving serving = new Serving(job.permit, job.incoming.onward(listener), listener.service(), job.since);
        job.outcome = Outcome.FAIL;
        Answer answer = new Answer(out);
        try (Serving.Scope here = serving.enter()) {
            inner.process(new Stored(in, plain), answer);
            job.outcome = answer.failed ? Outcome.FAIL : Outcome.OK;
        } catch (TTransportException e) {
            job.outcome = Outcome.CANCEL; // what a method throws becomes an answer; this is the client's connection
            throw e;
        }
    }

    /** A message without what was put in front of its method's name. */
    private static TMessage plain(TMessage message) {
        String method = ThriftName.split(message.name).method();
        return method.equals(message.name) ? message : new TMessage(method, message.type, message.seqid);
    }

    private static void refuse(TProtocol in, TProtocol out, TMessage message, String reason) throws TException {
        TProtocolUtil.skip(in, TType.STRUCT);
        in.readMessageEnd();
        if (message.type == TMessageType.ONEWAY) return;
        out.writeMessageBegin(new TMessage(message.name, TMessageType.EXCEPTION, message.seqid));
        new TApplicationException(TApplicationException.INTERNAL_ERROR, "pf-shed: " + reason).write(out);
        out.writeMessageEnd();
        out.getTransport().flush();
    }

    /** Gives back the beginning of a message that was read already. */
    private static final class Stored extends TProtocolDecorator {
        private final TMessage message;

        Stored(TProtocol inner, TMessage message) {
            super(inner);
            this.message = message;
        }

        @Override
        public TMessage readMessageBegin() {
            return message;
        }
    }

    /** Notes when the answer is that the method failed. */
    private static final class Answer extends TProtocolDecorator {
        private boolean failed;

        Answer(TProtocol inner) {
            super(inner);
        }

        @Override
        public void writeMessageBegin(TMessage message) throws TException {
            if (message.type == TMessageType.EXCEPTION) failed = true;
            super.writeMessageBegin(message);
        }
    }
}
