// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.thrift;

import java.nio.channels.Selector;
import org.apache.thrift.transport.TNonblockingServerTransport;
import org.apache.thrift.transport.TNonblockingTransport;
import org.apache.thrift.transport.TTransportException;

/**
 * Sees the bytes of each frame on the selector's thread, just before the server hands its task to a
 * {@link FencedExecutor} on that same thread.
 */
public final class FencedServerTransport extends TNonblockingServerTransport {
    private final TNonblockingServerTransport inner;
    private final Listener listener;

    /**
     * Wraps a server's socket.
     *
     * @param inner the socket
     * @param listener how to read what peers send
     */
    public FencedServerTransport(TNonblockingServerTransport inner, Listener listener) {
        this.inner = inner;
        this.listener = listener;
    }

    @Override
    public TNonblockingTransport accept() throws TTransportException {
        TNonblockingTransport t = inner.accept();
        return t == null ? null : new PeekingTransport(t, listener);
    }

    @Override
    public void registerSelector(Selector selector) {
        inner.registerSelector(selector);
    }

    @Override
    public void listen() throws TTransportException {
        inner.listen();
    }

    @Override
    public void close() {
        inner.close();
    }

    @Override
    public void interrupt() {
        inner.interrupt();
    }
}
