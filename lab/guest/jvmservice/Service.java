import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/**
 * A service on the JVM with a pool that is sized as such pools are, by the CPUs that it sees: {@code java Service SOCKET}.
 *
 * <p>It speaks as the Go service does: a byte is a request, and the same byte its answer. A request replaces some of the
 * live objects, so that the collector comes again and again, with a thread for each CPU. It says that it listens by a byte
 * on its standard output.
 */
final class Service {
    private static final int LIVE = 60_000; // objects
    private static final int REPLACED = 1_000; // by a request
    private static final int THREADS_PER_CPU = 2;

    /** What the collector has to look at. */
    private static final class Item {
        final Item next;
        final long[] data = new long[7];

        Item(Item next, int value) {
            this.next = next;
            data[0] = value;
        }
    }

    private final Item[] items = new Item[LIVE];
    private int at;

    private synchronized void put(Item[] batch) {
        for (Item item : batch) {
            items[at] = item;
            at = (at + 1) % LIVE;
        }
    }

    private static Item[] newBatch() {
        Item[] batch = new Item[REPLACED];
        Item last = null;
        for (int i = 0; i < batch.length; i++) {
            last = new Item(i % 8 == 0 ? null : last, i); // short chains, which die with their neighbours
            batch[i] = last;
        }
        return batch;
    }

    /** One request of a client, which sends the next when it has the answer. */
    private void answer(SocketChannel client, byte request) {
        put(newBatch());
        try {
            client.write(ByteBuffer.wrap(new byte[] {request}));
        } catch (IOException e) {
            throw new UncheckedIOException("a client was lost", e);
        }
    }

    /** Reads requests as they come, and has the pool answer them. */
    private void serve(String socket, ExecutorService pool) throws IOException {
        ByteBuffer request = ByteBuffer.allocate(1);
        try (ServerSocketChannel listener = ServerSocketChannel.open(StandardProtocolFamily.UNIX);
                Selector selector = Selector.open()) {
            listener.bind(UnixDomainSocketAddress.of(socket));
            listener.configureBlocking(false);
            listener.register(selector, SelectionKey.OP_ACCEPT);
            System.out.println();
            while (true) {
                selector.select();
                for (SelectionKey key : selector.selectedKeys()) {
                    if (key.isAcceptable()) {
                        SocketChannel client = listener.accept();
                        client.configureBlocking(false);
                        client.register(selector, SelectionKey.OP_READ);
                        continue;
                    }
                    SocketChannel client = (SocketChannel) key.channel();
                    if (client.read(request.clear()) < 0) {
                        client.close();
                        continue;
                    }
                    byte asked = request.get(0);
                    pool.execute(() -> answer(client, asked));
                }
                selector.selectedKeys().clear();
            }
        }
    }

    public static void main(String[] args) throws IOException {
        Service service = new Service();
        for (int i = 0; i < LIVE / REPLACED; i++) {
            service.put(newBatch());
        }
        service.serve(args[0], Executors.newFixedThreadPool(THREADS_PER_CPU * Runtime.getRuntime().availableProcessors()));
    }
}
