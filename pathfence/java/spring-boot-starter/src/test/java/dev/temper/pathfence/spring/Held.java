// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.spring;

import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpUpgradeHandler;
import jakarta.servlet.http.WebConnection;
import java.io.IOException;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.context.request.async.DeferredResult;
import org.springframework.web.servlet.mvc.method.annotation.SseEmitter;
import org.springframework.web.servlet.mvc.method.annotation.StreamingResponseBody;

/** Responses that last, and hold none of the server's threads. */
@RestController
class Held {
    private final Queue<Runnable> ends = new ConcurrentLinkedQueue<>();

    /** How many are under way. */
    int count() {
        return ends.size();
    }

    /** Ends all. */
    void end() {
        for (Runnable end = ends.poll(); end != null; end = ends.poll()) end.run();
    }

    @GetMapping("/sse")
    SseEmitter events() throws IOException {
        SseEmitter events = new SseEmitter(0L);
        events.send("first");
        ends.add(events::complete);
        return events;
    }

    @GetMapping("/poll")
    DeferredResult<String> poll() {
        DeferredResult<String> result = new DeferredResult<>(0L);
        ends.add(() -> result.setResult("polled"));
        return result;
    }

    @GetMapping("/stream")
    StreamingResponseBody stream() {
        return out -> {
            CountDownLatch end = new CountDownLatch(1);
            ends.add(end::countDown);
            try {
                end.await();
            } catch (InterruptedException e) {
                throw new IOException(e);
            }
            out.write("streamed".getBytes());
        };
    }

    /** What a WebSocket begins with. */
    @GetMapping("/upgrade")
    void upgrade(HttpServletRequest request) throws Exception {
        request.upgrade(Upgraded.class);
        ends.add(() -> {});
    }

    /** Has nothing to say. */
    public static final class Upgraded implements HttpUpgradeHandler {
        @Override
        public void init(WebConnection connection) {
            // The other side may begin.
        }

        @Override
        public void destroy() {
            // The connection is the server's.
        }
    }
}
