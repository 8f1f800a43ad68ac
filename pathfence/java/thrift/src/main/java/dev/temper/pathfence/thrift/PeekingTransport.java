// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.thrift;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import org.apache.thrift.transport.TNonblockingTransport;
import org.apache.thrift.transport.TTransportException;

/** A connection that leaves what the last frame said of itself to the task that the server makes of it. */
final class PeekingTransport extends TNonblockingTransport {
    private static final int MOST_BYTES = 4096;
    private static final int LENGTH_BYTES = 4;

    /** What this thread read last, and has not made a task of yet. */
    private static final ThreadLocal<Incoming> LAST = new ThreadLocal<>();

    private final TNonblockingTransport inner;
    private final Peek peek;
    private final byte[] frame = new byte[MOST_BYTES];
    private int length;
    private int lengthBytes;
    private int seen;

    PeekingTransport(TNonblockingTransport inner, Listener listener) throws TTransportException {
        super(inner.getConfiguration());
        this.inner = inner;
        peek = new Peek(listener);
    }

    /** What was read last; a task that comes without a frame has no key. */
    static Incoming take() {
        Incoming in = LAST.get();
        LAST.set(null);
        return in == null ? Incoming.NOTHING : in;
    }

    @Override
    public int read(ByteBuffer to) throws TTransportException {
        int from = to.position();
        int got = inner.read(to);
        ByteBuffer read = to.duplicate();
        if (got > 0) see(read.position(from).limit(from + got));
        return got;
    }

    @Override
    public int read(byte[] to, int offset, int size) throws TTransportException {
        int got = inner.read(to, offset, size);
        if (got > 0) see(ByteBuffer.wrap(to, offset, got));
        return got;
    }

    private void see(ByteBuffer bytes) {
        while (bytes.hasRemaining()) {
            if (lengthBytes < LENGTH_BYTES) {
                length = length << 8 | bytes.get() & 0xff;
                lengthBytes++;
            } else {
                seeBody(bytes);
            }
            if (lengthBytes == LENGTH_BYTES && seen >= length) finish();
        }
    }

    private void seeBody(ByteBuffer bytes) {
        int mine = Math.min(bytes.remaining(), length - seen);
        int wanted = Math.max(0, Math.min(mine, MOST_BYTES - seen));
        bytes.get(frame, Math.min(seen, MOST_BYTES), wanted);
        bytes.position(bytes.position() + mine - wanted);
        seen += mine;
    }

    private void finish() {
        LAST.set(peek.at(frame, Math.min(seen, MOST_BYTES)));
        length = 0;
        lengthBytes = 0;
        seen = 0;
    }

    @Override
    public boolean startConnect() throws IOException {
        return inner.startConnect();
    }

    @Override
    public boolean finishConnect() throws IOException {
        return inner.finishConnect();
    }

    @Override
    public SelectionKey registerSelector(Selector selector, int interests) throws IOException {
        return inner.registerSelector(selector, interests);
    }

    @Override
    public boolean isOpen() {
        return inner.isOpen();
    }

    @Override
    public void open() throws TTransportException {
        inner.open();
    }

    @Override
    public void close() {
        inner.close();
    }

    @Override
    public void write(byte[] bytes, int offset, int size) throws TTransportException {
        inner.write(bytes, offset, size);
    }

    @Override
    public int write(ByteBuffer bytes) throws TTransportException {
        return inner.write(bytes);
    }
}
