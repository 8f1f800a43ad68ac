// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.spring;

import dev.temper.pathfence.Serving;
import jakarta.servlet.Filter;
import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletResponse;
import java.io.IOException;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Stream;
import org.springframework.beans.factory.DisposableBean;

/**
 * Tells, once for a path, which call nobody sees: where a request lasts, has told of no edge, and its thread waits. One
 * thread looks at the stacks of such requests, a few times a second.
 */
final class UnseenCalls implements Filter, DisposableBean {
    private static final System.Logger LOG = System.getLogger(UnseenCalls.class.getName());
    private static final long LONG = 1_000_000_000; // what lasts less is not looked at
    private static final long PAUSE_MS = 500;
    private static final int LOOKS = 2; // a pause, at most; and of one request, until it is told
    private static final int MOST_PATHS = 256;
    /** The JDK's own. */
    private static final List<String> CLIENTS = List.of("jdk.internal.net.http.", "sun.net.www.");

    private static final List<String> SERVERS = List.of("org.apache.catalina.", "org.apache.coyote.", "org.apache.tomcat.util.", "org.eclipse.jetty.");
    private static final List<String> JDK = List.of("java.", "javax.", "jdk.", "sun.", "com.sun.");

    private final List<String> application;
    private final Set<Watched> watched = ConcurrentHashMap.newKeySet();
    private final Set<String> told = ConcurrentHashMap.newKeySet();
    private final Thread looking = new Thread(this::look, "pathfence-unseen");

    /** @param application packages whose frames are the application's own */
    UnseenCalls(List<String> application) {
        this.application = application;
        looking.setDaemon(true);
        looking.start();
    }

    /** A request on its thread. */
    private static final class Watched {
        final Thread thread = Thread.currentThread();
        final long since = System.nanoTime();
        final Serving serving;
        int waited; // looks that found it so

        Watched(Serving serving) {
            this.serving = serving;
        }

        boolean lasts() {
            return System.nanoTime() - since > LONG && !serving.permit().hasEdge();
        }
    }

    @Override
    public void doFilter(ServletRequest request, ServletResponse response, FilterChain chain)
            throws IOException, ServletException {
        Watched w = Serving.here().map(Watched::new).orElse(null);
        if (w != null) watched.add(w);
        try {
            chain.doFilter(request, response);
        } finally {
            if (w != null) watched.remove(w);
        }
    }

    private void look() {
        try {
            while (true) {
                Thread.sleep(PAUSE_MS);
                watched.stream().filter(Watched::lasts).filter(this::isNew).limit(LOOKS).forEach(this::look);
            }
        } catch (InterruptedException e) {
            // It was told to end.
        }
    }

    private boolean isNew(Watched w) {
        return told.size() < MOST_PATHS && !told.contains(w.serving.onward().path());
    }

    private void look(Watched w) {
        StackTraceElement[] stack = w.thread.getStackTrace();
        // The request may have ended meanwhile, and its thread serve another.
        if (!waits(stack) || !isCall(stack) || !watched.contains(w) || ++w.waited < LOOKS) return;
        String path = w.serving.onward().path();
        if (told.add(path)) LOG.log(System.Logger.Level.WARNING, message(path, stack));
    }

    /** Whether a thread is in a socket, or waits for another thread. */
    static boolean waits(StackTraceElement[] stack) {
        if (stack.length == 0 || !stack[0].isNativeMethod()) return false;
        String in = stack[0].getClassName() + "." + stack[0].getMethodName();
        return in.startsWith("sun.nio.ch.")
                || in.startsWith("java.net.")
                || in.equals("jdk.internal.misc.Unsafe.park")
                || in.startsWith("java.lang.Object.wait");
    }

    /**
     * Whether it is a client that waits. The server reads a slow upload and writes to a slow reader; the application's own
     * locks and queues are its own.
     */
    private boolean isCall(StackTraceElement[] stack) {
        for (StackTraceElement f : stack) {
            if (startsWithAny(CLIENTS, f)) return true;
            if (startsWithAny(JDK, f)) continue;
            return !startsWithAny(SERVERS, f) && (!startsWithAny(application, f) || isSocket(stack[0]));
        }
        return false;
    }

    private static boolean isSocket(StackTraceElement top) {
        return !top.getClassName().equals("jdk.internal.misc.Unsafe") && !top.getClassName().equals("java.lang.Object");
    }

    private String message(String path, StackTraceElement[] stack) {
        StackTraceElement client = first(Stream.of(stack).filter(f -> !startsWithAny(JDK, f)), stack[0]);
        StackTraceElement caller = first(Stream.of(stack).filter(f -> startsWithAny(application, f)), client);
        return path + " waits in " + place(client) + (caller == client ? "" : ", called by " + place(caller))
                + ", and PathFence sees no call of it: it shares a fence with no path that calls the same. Make the client one"
                + " that is seen (a bean, or observed), or put try (Serving.Scope call = Serving.calling(\"name\")) around the"
                + " call. pathfence.outgoing.unseen=false ends this message.";
    }

    private static String place(StackTraceElement f) {
        return f.getClassName() + "." + f.getMethodName() + "(" + f.getFileName() + ":" + f.getLineNumber() + ")";
    }

    private static StackTraceElement first(Stream<StackTraceElement> frames, StackTraceElement otherwise) {
        return frames.findFirst().orElse(otherwise);
    }

    private static boolean startsWithAny(List<String> prefixes, StackTraceElement frame) {
        return prefixes.stream().anyMatch(frame.getClassName()::startsWith);
    }

    @Override
    public void destroy() {
        looking.interrupt();
    }
}
