// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.spring;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.temper.pathfence.Call;
import dev.temper.pathfence.Config;
import dev.temper.pathfence.Fence;
import dev.temper.pathfence.Outcome;
import dev.temper.pathfence.Permit;
import jakarta.servlet.DispatcherType;
import jakarta.servlet.FilterChain;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletRequestWrapper;
import jakarta.servlet.http.HttpServletResponse;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.springframework.mock.web.MockFilterChain;
import org.springframework.mock.web.MockHttpServletRequest;
import org.springframework.mock.web.MockHttpServletResponse;

/** What a server does at the worst moment. The test is the server. */
class FencedRequestTest {
    private final AtomicLong now = new AtomicLong();
    private final List<Throwable> errors = new ArrayList<>();
    private final Fence fence = Fence.builder(Config.builder(1).target(250_000_000).build())
            .clock(now::get)
            .withoutTicker()
            .errors(errors::add)
            .build();
    private final Refusals refusals = new Refusals(Refusals.EMPTY, List::of);
    private final Admission admission = new Admission(fence, request -> "a", new Within(), "", false, () -> List.of("/actuator/**"), List.of(new Failing()));
    private Permit held;

    /** What an application's own conventions may do. */
    private static final class Failing implements FenceListener {
        @Override
        public void waits(FencedRequest r, HttpServletRequest request, HttpServletResponse response) {
            throw new IllegalStateException("a convention fails");
        }

        @Override
        public void granted(FencedRequest r, HttpServletRequest request, HttpServletResponse response) {
            throw new IllegalStateException("a convention fails");
        }

        @Override
        public void refused(FencedRequest r, HttpServletRequest request, HttpServletResponse response) {
            throw new AssertionError("a convention fails");
        }
    }

    private int resumed;

    @BeforeEach
    void takeTheWorker() throws Exception {
        held = fence.acquire(Call.of("a"));
    }

    @AfterEach
    void nothingLeaks() {
        held.release(Outcome.OK);
        assertEquals(0, fence.inFlight() + fence.waiting());
        assertEquals(0, fence.states().stream().mapToLong(s -> s.failed()).sum());
        assertEquals(List.of(), errors);
    }

    private static MockHttpServletRequest request(String path) {
        return new MockHttpServletRequest("GET", path);
    }

    private FencedRequest admit() {
        FencedRequest r = admission.admit(request("/orders"));
        assertFalse(r.isDecided());
        return r;
    }

    private void expire() {
        now.addAndGet(500_000_000);
        fence.tick();
    }

    private void ended() {
        resumed++;
        throw new IllegalStateException("the server has ended it");
    }

    private void stopped() {
        resumed++;
        throw new RejectedExecutionException("the server stops");
    }

    /** Whatever metrics and traces do, requests that wait, are served or refused go on. */
    @Test
    void whoIsToldCannotHurt() throws Exception {
        FencedRequest r = admit();
        r.whenOver(() -> {
            throw new IllegalStateException("a handler fails");
        });
        admission.tellWaits(r, request("/orders"), new MockHttpServletResponse());
        expire();
        MockHttpServletRequest asked = request("/orders");
        admission.admit(asked);
        expire();
        MockHttpServletResponse answer = new MockHttpServletResponse();
        new FenceFilter(admission, refusals, true).doFilter(asked, answer, new MockFilterChain());
        assertEquals(503, answer.getStatus());
        r.leave();
    }

    @Test
    void aRequestThatCannotWaitIsWithdrawn() {
        FencedRequest r = admit();
        r.withdraw();
        assertEquals(0, fence.waiting());
    }

    @Test
    void aRequestThatCannotWaitGivesBackWhatItIsGrantedMeanwhile() {
        FencedRequest r = admit();
        held.release(Outcome.OK);
        r.withdraw();
        assertEquals(0, fence.inFlight());
    }

    @Test
    void whatWaitsIsResumedOnce() {
        FencedRequest r = admit();
        assertTrue(r.park(() -> resumed++));
        held.release(Outcome.OK);
        assertEquals(1, resumed);
        assertTrue(r.isDecided());
        r.leave(); // no filter has seen it
        assertEquals(0, fence.inFlight());
    }

    @Test
    void whatIsDecidedMeanwhileDoesNotWait() {
        FencedRequest r = admit();
        held.release(Outcome.OK);
        assertFalse(r.park(() -> resumed++));
        assertEquals(0, resumed);
        r.leave();
    }

    @Test
    void whatIsDecidedMeanwhileIsResumedWhereItHasTo() {
        FencedRequest r = admit();
        held.release(Outcome.OK);
        r.parkAnyway(() -> resumed++);
        assertEquals(1, resumed);
        r.leave();
    }

    @Test
    void whatIsGrantedWhenTheServerHasEndedItComesBack() {
        admit().park(this::ended);
        held.release(Outcome.OK);
        assertEquals(1, resumed);
        assertEquals(0, fence.inFlight());
    }

    @Test
    void whatIsGrantedWhenTheServerStopsComesBack() {
        admit().park(this::stopped);
        held.release(Outcome.OK);
        assertEquals(1, resumed);
        assertEquals(0, fence.inFlight());
    }

    @Test
    void whatIsGrantedMeanwhileComesBackIfTheServerHasEndedIt() {
        FencedRequest r = admit();
        held.release(Outcome.OK);
        r.parkAnyway(this::ended);
        assertEquals(1, resumed);
        assertEquals(0, fence.inFlight());
    }

    @Test
    void whatTheServerLosesWaitsNoMore() {
        FencedRequest r = admit();
        assertFalse(r.abandon(), "it does not wait without a thread");
        r.park(() -> resumed++);
        assertTrue(r.abandon());
        assertFalse(r.abandon());
        assertEquals(0, fence.waiting());
        held.release(Outcome.OK);
        assertEquals(0, resumed);
    }

    @Test
    void whatIsResumedCannotBeAbandoned() {
        FencedRequest r = admit();
        r.park(() -> resumed++);
        held.release(Outcome.OK);
        assertFalse(r.abandon());
        assertEquals(1, fence.inFlight());
        r.leave();
    }

    /** Whoever brings a refusal about, the ticker or another request's end, writes to no client. */
    @Test
    void aRefusalIsForTheServersThread() {
        FencedRequest r = admit();
        r.park(() -> resumed++);
        expire();
        assertEquals(1, resumed);
        assertEquals("expired", r.refused());
    }

    @Test
    void aRefusalWhenTheServerHasEndedItHurtsNobody() {
        admit().park(this::ended);
        expire();
        assertEquals(1, resumed);
    }

    @Test
    void whatGoesOnAsynchronouslyHoldsAWorkerWhileItIsDispatched() throws Exception {
        held.release(Outcome.OK);
        MockHttpServletRequest request = request("/orders");
        request.setAsyncSupported(true);
        long[] during = new long[2];
        FenceFilter filter = new FenceFilter(admission, refusals, true);
        admission.admit(request);
        filter.doFilter(request, new MockHttpServletResponse(), (in, out) -> {
            during[0] = fence.inFlight();
            in.startAsync();
        });
        assertEquals(0, fence.inFlight());
        request.setAsyncStarted(false);
        request.setDispatcherType(DispatcherType.ASYNC);
        filter.doFilter(request, new MockHttpServletResponse(), (in, out) -> during[1] = fence.inFlight());
        assertArrayEquals(new long[] {1, 1}, during);
        assertEquals(0, fence.inFlight());
    }

    /** In a server that has no fence before it, nothing is served unfenced but what is meant to be. */
    @Test
    void whatNobodyAdmittedIsRefused() throws Exception {
        FenceFilter filter = new FenceFilter(admission, refusals, true);
        int[] served = {0};
        FilterChain chain = (in, out) -> served[0]++;
        assertThrows(
                IllegalStateException.class,
                () -> filter.doFilter(notOfMockMvc(request("/orders")), new MockHttpServletResponse(), chain));
        assertEquals(0, served[0]);
        assertNull(admission.admit(request("/actuator/health")));
        filter.doFilter(request("/actuator/health"), new MockHttpServletResponse(), chain);
        assertEquals(1, served[0]);
        filter.doFilter(new HttpServletRequestWrapper(request("/orders")), new MockHttpServletResponse(), chain);
        assertEquals(2, served[0], "MockMvc's, in a test that has a server");
        // As where the application is deployed to a server.
        new FenceFilter(admission, refusals, false).doFilter(notOfMockMvc(request("/orders")), new MockHttpServletResponse(), chain);
        assertEquals(3, served[0]);
    }

    @Test
    void refusalsAreToldOnceAMinute() {
        List<String> lines = new ArrayList<>();
        AtomicLong minute = new AtomicLong();
        RefusalLog log = new RefusalLog(() -> minute.get() * 60_000_000_000L, lines::add);
        FencedRequest r = admit();
        expire();
        for (long now : new long[] {0, 0, 0, 1, 1}) {
            minute.set(now);
            log.refused(r, request("/orders"), new MockHttpServletResponse());
        }
        r.leave();
        assertEquals(2, lines.size(), lines.toString());
        assertTrue(lines.get(0).startsWith("PathFence has refused a request of class ~u") && lines.get(0).contains(", the last one (a) as expired."), lines.get(0));
        assertTrue(lines.get(1).startsWith("PathFence has refused 3 requests since the last such line of class ~u"), lines.get(1));
    }

    private static HttpServletRequest notOfMockMvc(HttpServletRequest request) {
        return (HttpServletRequest) Proxy.newProxyInstance(
                FencedRequestTest.class.getClassLoader(),
                new Class<?>[] {HttpServletRequest.class},
                (proxy, method, arguments) -> method.invoke(request, arguments));
    }
}
