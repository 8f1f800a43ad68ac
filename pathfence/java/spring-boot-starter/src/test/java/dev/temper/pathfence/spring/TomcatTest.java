// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.spring;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;

import jakarta.servlet.AsyncContext;
import jakarta.servlet.ServletException;
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Path;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.catalina.Context;
import org.apache.catalina.connector.Request;
import org.apache.catalina.connector.Response;
import org.apache.catalina.startup.Tomcat;
import org.apache.catalina.valves.ValveBase;
import org.apache.coyote.ActionCode;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** What {@link FenceValve} counts on in Tomcat, and only a rare moment would show. The rest shows in {@link WaitedTest}. */
@Timeout(60)
class TomcatTest {
    private final Tomcat tomcat = new Tomcat();
    private final HttpClient client = HttpClient.newHttpClient();

    @AfterEach
    void stop() throws Exception {
        tomcat.stop();
        tomcat.destroy();
    }

    private void start(Path folder, ValveBase valve, HttpServlet servlet) throws Exception {
        tomcat.setBaseDir(folder.toString());
        tomcat.setPort(0);
        tomcat.getConnector();
        Context context = tomcat.addContext("", null);
        Tomcat.addServlet(context, "servlet", servlet).setAsyncSupported(true);
        context.addServletMappingDecoded("/", "servlet");
        tomcat.getEngine().getPipeline().addValve(valve);
        tomcat.start();
    }

    private CompletableFuture<HttpResponse<String>> get() {
        URI uri = URI.create("http://127.0.0.1:" + tomcat.getConnector().getLocalPort() + "/");
        return client.sendAsync(HttpRequest.newBuilder(uri).build(), HttpResponse.BodyHandlers.ofString());
    }

    /** A request may be decided while its thread has not yet let go of it. */
    @Test
    void whatIsSentBackAtOnceComesBack(@TempDir Path folder) throws Exception {
        ValveBase valve = new ValveBase(true) {
            @Override
            public void invoke(Request request, Response response) throws IOException, ServletException {
                if (request.isAsyncDispatching()) {
                    request.getCoyoteRequest().action(ActionCode.ASYNC_DISPATCHED, null);
                    getNext().invoke(request, response);
                } else {
                    request.startAsync().setTimeout(0);
                    request.getCoyoteRequest().action(ActionCode.ASYNC_DISPATCH, null);
                }
            }
        };
        start(folder, valve, new HttpServlet() {
            private static final long serialVersionUID = 1L;

            @Override
            protected void doGet(HttpServletRequest request, HttpServletResponse response) throws IOException {
                response.getWriter().print("a " + request.getDispatcherType());
            }
        });
        assertEquals("a REQUEST", get().get(30, TimeUnit.SECONDS).body());
    }

    /** Or when the server has ended it, and its parts serve the connection's next request, which must not be sent back for it. */
    @Test
    void whatHasEndedIsNotTakenForTheNext(@TempDir Path folder) throws Exception {
        BlockingQueue<Request> requests = new LinkedBlockingQueue<>();
        BlockingQueue<AsyncContext> begun = new LinkedBlockingQueue<>();
        ValveBase valve = new ValveBase(true) {
            @Override
            public void invoke(Request request, Response response) throws IOException, ServletException {
                requests.add(request);
                getNext().invoke(request, response);
            }
        };
        start(folder, valve, new HttpServlet() {
            private static final long serialVersionUID = 1L;

            @Override
            protected void doGet(HttpServletRequest request, HttpServletResponse response) {
                begun.add(request.startAsync());
            }
        });
        var first = get();
        AsyncContext ended = begun.take();
        ended.getRequest();
        ended.complete();
        assertEquals(200, first.get(30, TimeUnit.SECONDS).statusCode());
        var second = get();
        AsyncContext next = begun.take();
        assertSame(requests.take(), requests.take(), "another connection was used");
        assertThrows(IllegalStateException.class, ended::getRequest);
        assertThrows(IllegalStateException.class, () -> ended.setTimeout(1));
        next.complete();
        assertEquals(200, second.get(30, TimeUnit.SECONDS).statusCode());
    }
}
