// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.thrift;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.Arrays;
import org.apache.thrift.TException;
import org.apache.thrift.protocol.TBinaryProtocol;
import org.apache.thrift.protocol.TMessage;
import org.apache.thrift.protocol.TMessageType;
import org.apache.thrift.transport.TMemoryBuffer;
import org.junit.jupiter.api.Test;

class PeekTest {
    private static byte[] message(String name) throws TException {
        TMemoryBuffer memory = new TMemoryBuffer(64);
        new TBinaryProtocol(memory).writeMessageBegin(new TMessage(name, TMessageType.CALL, 1));
        return Arrays.copyOf(memory.getArray(), 4096);
    }

    /** What a connection has read before counts neither towards a message's largest size, nor in any other way. */
    @Test
    void oneAfterTheOther() throws TException {
        Peek peek = new Peek(Listener.of("", true));
        byte[] posts = message("posts");
        byte[] cut = Arrays.copyOf(posts, 6);
        long read = 0;
        for (long most = 100L << 20; read <= 2 * most; read += 2L * posts.length) { // Thrift's largest message
            assertEquals("posts", peek.at(posts, posts.length).method());
            assertEquals("", peek.at(cut, cut.length).method());
            assertEquals("users", peek.at(message("users"), posts.length).method());
        }
    }
}
