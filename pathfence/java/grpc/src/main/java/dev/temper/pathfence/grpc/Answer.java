// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.grpc;

import dev.temper.pathfence.Outcome;
import io.grpc.ForwardingServerCall.SimpleForwardingServerCall;
import io.grpc.Metadata;
import io.grpc.ServerCall;
import io.grpc.Status;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.IntConsumer;

/**
 * The call as its handler has it. The fence may end it meanwhile, on another thread; then it is cancelled for its handler,
 * and what that says reaches nobody.
 */
final class Answer<Q, R> extends SimpleForwardingServerCall<Q, R> {
    private final IntConsumer requests;
    private final FencedCall fenced;
    private final ReentrantLock lock = new ReentrantLock(); // gRPC's own is for one thread at a time
    private boolean closed;
    private volatile boolean taken; // from the handler

    /**
     * The handler's side of a call.
     *
     * @param requests gets how many messages the handler asks for
     */
    Answer(ServerCall<Q, R> call, IntConsumer requests, FencedCall fenced) {
        super(call);
        this.requests = requests;
        this.fenced = fenced;
    }

    @Override
    public void request(int messages) {
        requests.accept(messages);
    }

    @Override
    public void sendHeaders(Metadata headers) {
        lock.lock();
        try {
            if (!taken) super.sendHeaders(headers);
        } finally {
            lock.unlock();
        }
    }

    @Override
    public void sendMessage(R message) {
        lock.lock();
        try {
            if (!taken) super.sendMessage(message);
        } finally {
            lock.unlock();
        }
    }

    @Override
    public void close(Status status, Metadata trailers) {
        lock.lock();
        try {
            if (taken) return;
            closed = true;
        } finally {
            lock.unlock();
        }
        finish(status, trailers);
    }

    /** Ends the call in place of its handler, unless that has. */
    void end(Status status, Metadata trailers) {
        lock.lock();
        try {
            if (closed || taken) return;
            taken = true;
        } finally {
            lock.unlock();
        }
        finish(status, trailers);
    }

    /** How it ended is said before its client can know, and the worker is given back after that. */
    private void finish(Status status, Metadata trailers) {
        fenced.ends(outcome(status.getCode()));
        try {
            super.close(status, trailers);
        } finally {
            fenced.giveBack();
        }
    }

    @Override
    public boolean isCancelled() {
        return taken || super.isCancelled();
    }

    private static Outcome outcome(Status.Code code) {
        return switch (code) {
            case UNKNOWN, DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED, ABORTED, INTERNAL, UNAVAILABLE, DATA_LOSS -> Outcome.FAIL;
            case CANCELLED -> Outcome.CANCEL;
            case OK -> Outcome.OK;
            default -> Outcome.LIGHT; // the caller's own fault, which was found out at once
        };
    }
}
