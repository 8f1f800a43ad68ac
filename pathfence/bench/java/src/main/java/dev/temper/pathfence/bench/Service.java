// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.bench;

import dev.temper.pathfence.Config;
import dev.temper.pathfence.Fence;
import dev.temper.pathfence.thrift.FencedExecutor;
import dev.temper.pathfence.thrift.FencedProcessor;
import dev.temper.pathfence.thrift.FencedServerTransport;
import dev.temper.pathfence.thrift.Listener;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.apache.thrift.TException;
import org.apache.thrift.TProcessor;
import org.apache.thrift.protocol.TBinaryProtocol;
import org.apache.thrift.server.THsHaServer;
import org.apache.thrift.transport.TNonblockingServerSocket;
import org.apache.thrift.transport.TNonblockingServerTransport;
import org.apache.thrift.transport.TTransportException;

/**
 * The service that paths share, on Apache Thrift's THsHaServer. It passes each call on to its path's downstreams, one after
 * the other, in the order in which they are given; says on standard output which ports it listens on, and serves until its
 * standard input ends.
 *
 * <pre>--workers N  --downstream PATH=PORT ...  [--fence JSON [--onward] [--name N] | --admission vegas|gradient2|bulkhead]</pre>
 *
 * <p>With an admission each path has a server of its own, since it has to know the path before a worker is taken; all servers
 * share the workers. With none, and with the fence, there is one server, as a service has it.
 */
public final class Service {
    private int workers = 16;
    private final Map<String, List<Integer>> downstreams = new TreeMap<>(); // a path's ports
    private String fence = "";
    private String admission = "";
    // There are fenced services among the downstreams: they are told what travels with a request. What works only takes no
    // notice.
    private boolean onward;
    // Its name in what travels with a request: then peers are services that may choose keys and depths. Empty: it has none,
    // and they may not.
    private String name = "";

    private Service(String[] arguments) {
        for (Iterator<String> i = List.of(arguments).iterator(); i.hasNext(); ) {
            String option = i.next();
            if (option.equals("--onward")) onward = true;
            else if (i.hasNext()) set(option, i.next());
            else throw new IllegalArgumentException(option + " has no value");
        }
    }

    private void set(String option, String value) {
        switch (option) {
            case "--workers" -> workers = Integer.parseInt(value);
            case "--downstream" -> {
                int equals = value.indexOf('=');
                downstreams
                        .computeIfAbsent(value.substring(0, equals), path -> new ArrayList<>())
                        .add(Integer.valueOf(value.substring(equals + 1)));
            }
            case "--fence" -> fence = value;
            case "--name" -> name = value;
            case "--admission" -> admission = value;
            default -> throw new IllegalArgumentException("there is no " + option);
        }
    }

    /**
     * Serves.
     *
     * @param arguments see above
     * @throws Exception where it cannot
     */
    public static void main(String[] arguments) throws Exception {
        Service service = new Service(arguments);
        Map<String, Integer> ports = service.start();
        StringBuilder line = new StringBuilder("listening");
        ports.forEach((name, port) -> line.append(' ').append(name).append('=').append(port));
        System.out.println(line);
        System.in.transferTo(OutputStream.nullOutputStream());
        Runtime.getRuntime().halt(0); // its threads serve to the end
    }

    private Map<String, Integer> start() throws TTransportException {
        if (!fence.isEmpty()) return fenced();
        return admission.isEmpty() ? shared() : admitted();
    }

    private Map<String, Integer> shared() throws TTransportException {
        TNonblockingServerSocket socket = socket();
        serve(socket, Executors.newFixedThreadPool(workers), processor());
        return Map.of("service", socket.getPort());
    }

    private Map<String, Integer> fenced() throws TTransportException {
        Listener listener = Listener.of(name, !name.isEmpty());
        TNonblockingServerSocket socket = socket();
        serve(
                new FencedServerTransport(socket, listener),
                new FencedExecutor(Fence.of(Config.parse(fence)), Executors.newFixedThreadPool(workers)),
                new FencedProcessor(processor(), listener));
        return Map.of("service", socket.getPort());
    }

    private Map<String, Integer> admitted() throws TTransportException {
        Admission gate = Admission.named(admission, workers, downstreams.keySet());
        ExecutorService pool = Executors.newFixedThreadPool(workers);
        ExecutorService refusals = Executors.newSingleThreadExecutor();
        Map<String, Integer> ports = new TreeMap<>();
        for (String path : downstreams.keySet()) {
            TNonblockingServerSocket socket = socket();
            serve(socket, new AdmittingExecutor(path, gate, pool, refusals), processor());
            ports.put(path, socket.getPort());
        }
        return ports;
    }

    private static TNonblockingServerSocket socket() throws TTransportException {
        return new TNonblockingServerSocket(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
    }

    private static void serve(TNonblockingServerTransport socket, ExecutorService executor, TProcessor processor) {
        THsHaServer server = new THsHaServer(new THsHaServer.Args(socket)
                .executorService(executor)
                .processor(processor)
                .protocolFactory(new TBinaryProtocol.Factory()));
        new Thread(server::serve).start();
    }

    /** Each worker has its own connection to each downstream, as Thrift's clients are for one thread. */
    private TProcessor processor() {
        ThreadLocal<Map<Integer, Message.Connection>> connected = ThreadLocal.withInitial(HashMap::new);
        return Message.processor((path, work) -> passOn(connected.get(), path, work));
    }

    private void passOn(Map<Integer, Message.Connection> connected, String path, long work) throws TException {
        for (int port : downstreams.get(path)) {
            Message.Connection c = connected.get(port);
            if (c == null) connected.put(port, c = new Message.Connection(port, onward));
            try {
                c.call(path, work);
            } catch (TException e) {
                connected.remove(port).close();
                throw e;
            }
        }
    }
}
