// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.grpc;

import dev.temper.pathfence.Outcome;
import io.grpc.Context;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor.MethodType;
import io.grpc.ServerCall;
import io.grpc.ServerCallHandler;
import io.grpc.Status;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * Takes in what gRPC brings of a call, and passes it on to the handler. A call of one request is taken in on gRPC's own
 * executor and asks for a worker when the request is whole: its client may take its time until then. A stream is taken in
 * on its worker.
 */
final class Intake<Q, R> extends ServerCall.Listener<Q> {
    private static final System.Logger LOG = System.getLogger(Intake.class.getName());

    private final Answer<Q, R> answer;
    private final Metadata headers;
    private final ServerCallHandler<Q, R> next;
    private final FencedCall fenced;
    private final Context arrived = Context.current();
    private final MethodType type;
    private final boolean collects; // the one request
    private final List<Q> request = new ArrayList<>(1);
    private final AtomicBoolean asked = new AtomicBoolean();
    private boolean whole;
    private boolean ready;
    private volatile boolean refused;
    private ServerCall.Listener<Q> handler; // the workers'; null: it has not started

    Intake(FencedCall fenced, ServerCall<Q, R> call, Metadata headers, ServerCallHandler<Q, R> next) {
        this.fenced = fenced;
        this.headers = headers;
        this.next = next;
        type = call.getMethodDescriptor().getType();
        collects = type.clientSendsOneMessage();
        answer = new Answer<>(call, collects ? messages -> asks() : call::request, fenced);
        fenced.takenInBy(this);
        if (collects) call.request(2); // a second one would be an error
        else start();
    }

    /** That it is ready is no task of its own, which could be rejected: that ends the call, with its handler at work. */
    private void start() {
        pass(arrived, () -> {
            handler = next.startCall(answer, headers);
            if (ready) handler.onReady();
        });
    }

    /** To the handler, as long as the call is not over. */
    private void pass(Context in, Runnable callback) {
        if (collects) fenced.execute(in.wrap(() -> guarded(callback)));
        else if (!fenced.isOver()) guarded(callback);
    }

    /** It may throw a checked exception, too: not every language declares them. */
    private void guarded(Runnable callback) {
        try {
            callback.run();
        } catch (Throwable e) {
            fail(e);
        }
    }

    @Override
    public void onMessage(Q message) {
        if (!collects) pass(Context.current(), () -> handler.onMessage(message));
        else if (request.isEmpty()) request.add(kept(message));
        else answer.end(Status.INTERNAL.withDescription("Too many requests"), new Metadata());
    }

    /** gRPC closes what it has brought when this thread returns, which may be before a worker reads it. */
    @SuppressWarnings("unchecked")
    private static <Q> Q kept(Q message) {
        if (!(message instanceof InputStream stream)) return message;
        try {
            return (Q) new ByteArrayInputStream(stream.readAllBytes());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    @Override
    public void onHalfClose() {
        if (!collects) {
            pass(Context.current(), () -> handler.onHalfClose());
            return;
        }
        whole = true;
        start();
    }

    /** The handler asks for its request. It gets all of it, once. */
    private void asks() {
        if (asked.getAndSet(true)) return;
        for (Q message : request) pass(arrived, () -> handler.onMessage(message));
        pass(arrived, () -> {
            if (type == MethodType.SERVER_STREAMING) fenced.rests(); // what comes after this is a stream
            handler.onHalfClose();
        });
    }

    @Override
    public void onReady() {
        if (collects && !whole) ready = true; // it is for the handler to know, when it has started
        else pass(Context.current(), () -> handler.onReady());
    }

    /** gRPC cancels the context as soon as this returns; the handler is to find it as it was, on its worker. */
    @Override
    public void onComplete() {
        end(Context.current().fork(), () -> {
            if (refused) handler.onCancel();
            else handler.onComplete();
        });
    }

    @Override
    public void onCancel() {
        end(Context.current(), () -> handler.onCancel());
    }

    private void end(Context in, Runnable last) {
        Runnable told = () -> {
            if (handler != null) guarded(last);
        };
        if (collects) {
            fenced.end(in.wrap(told));
        } else {
            fenced.over(Outcome.CANCEL);
            told.run();
        }
    }

    /** On a thread that is no worker. */
    void refuse(String reason) {
        refused = true; // the handler has not ended it: for it the call is cancelled
        answer.end(FencedServer.refused(reason), FencedServer.trailers(reason));
    }

    /** A downstream's refusal becomes the call's own. Anything else ends as it would without the fence. */
    private void fail(Throwable thrown) {
        String reason = FencedServer.shedBelow(thrown);
        if (reason != null) {
            answer.end(FencedServer.refused(reason), FencedServer.trailers(reason));
            return;
        }
        LOG.log(System.Logger.Level.ERROR, "a handler failed", thrown);
        Status unknown = Status.UNKNOWN.withDescription("Application error processing RPC").withCause(thrown);
        answer.end(handler == null ? Status.fromThrowable(thrown) : unknown, new Metadata());
        fenced.over(Outcome.FAIL); // if it was not
    }
}
