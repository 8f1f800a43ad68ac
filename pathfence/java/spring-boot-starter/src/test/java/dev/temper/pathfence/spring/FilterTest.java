// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.spring;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.temper.pathfence.Call;
import dev.temper.pathfence.Config;
import dev.temper.pathfence.Fence;
import dev.temper.pathfence.Outcome;
import dev.temper.pathfence.Permit;
import jakarta.servlet.AsyncContext;
import jakarta.servlet.DispatcherType;
import jakarta.servlet.FilterChain;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.springframework.mock.web.MockAsyncContext;
import org.springframework.mock.web.MockHttpServletRequest;
import org.springframework.mock.web.MockHttpServletResponse;

/** What a server does at the worst moment. The test is the server. */
class FilterTest {
    private final AtomicLong now = new AtomicLong();
    private final List<Throwable> errors = new ArrayList<>();
    private final Fence fence = Fence.builder(Config.builder(1).build())
            .clock(now::get)
            .withoutTicker()
            .errors(errors::add)
            .build();
    private final FenceFilter filter = new FenceFilter(fence, request -> "a", "", false, List.of());
    private final Request request = new Request();
    private final MockHttpServletResponse response = new MockHttpServletResponse();
    private Permit held;
    private int dispatches;
    private int served;

    private final class Request extends MockHttpServletRequest {
        private Runnable beforeAsync = () -> {};
        private Runnable onDispatch = () -> {};

        Request() {
            super("GET", "/orders");
            setAsyncSupported(true);
        }

        @Override
        public AsyncContext startAsync() {
            beforeAsync.run();
            super.startAsync();
            MockAsyncContext async = new MockAsyncContext(this, response) {
                @Override
                public void dispatch() {
                    dispatches++;
                    onDispatch.run();
                }
            };
            setAsyncContext(async);
            return async;
        }
    }

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

    private void come() throws Exception {
        filter.doFilter(request, response, (in, out) -> served++);
    }

    /** The server runs what was dispatched. */
    private void comeBack() throws Exception {
        request.setDispatcherType(DispatcherType.ASYNC);
        request.setAsyncStarted(false);
        come();
    }

    private static void ended() {
        throw new IllegalStateException("the server has ended it");
    }

    @Test
    void aRequestThatCannotWaitIsWithdrawn() {
        request.setAsyncSupported(false);
        IllegalStateException e = assertThrows(IllegalStateException.class, this::come);
        assertTrue(e.getMessage().contains("asyncSupported"), e.getMessage());
        assertEquals(0, fence.waiting());
        assertEquals(0, served);
    }

    @Test
    void aRequestThatCannotWaitGivesBackWhatItIsGrantedMeanwhile() {
        request.setAsyncSupported(false);
        request.beforeAsync = () -> held.release(Outcome.OK);
        assertThrows(IllegalStateException.class, this::come);
        assertEquals(0, fence.inFlight());
    }

    @Test
    void whatIsGrantedWhenTheServerHasEndedItComesBack() throws Exception {
        request.onDispatch = FilterTest::ended;
        come();
        held.release(Outcome.OK);
        assertEquals(1, dispatches);
        assertEquals(0, fence.inFlight());
    }

    @Test
    void whatIsGrantedMeanwhileComesBackIfTheServerHasEndedIt() throws Exception {
        request.beforeAsync = () -> held.release(Outcome.OK);
        request.onDispatch = FilterTest::ended;
        come();
        assertEquals(1, dispatches);
        assertEquals(0, fence.inFlight());
    }

    /** Whoever brings a refusal about, the ticker or another request's end, writes to no client. */
    @Test
    void aRefusalIsWrittenByTheServersThread() throws Exception {
        come();
        now.set(500_000_000);
        fence.tick();
        assertEquals(1, dispatches);
        assertFalse(response.isCommitted());
        comeBack();
        assertEquals(503, response.getStatus());
        assertEquals("expired", response.getHeader("x-pf-shed"));
        assertEquals(0, served);
    }

    @Test
    void aRefusalMeanwhileIsWrittenByTheServersThread() throws Exception {
        request.beforeAsync = () -> {
            now.set(500_000_000);
            fence.tick();
        };
        come();
        assertEquals(1, dispatches);
        assertFalse(response.isCommitted());
        comeBack();
        assertEquals(503, response.getStatus());
        assertEquals(0, served);
    }

    @Test
    void aRefusalWhenTheServerHasEndedItHurtsNobody() throws Exception {
        request.onDispatch = FilterTest::ended;
        come();
        now.set(500_000_000);
        fence.tick();
        assertEquals(1, dispatches);
    }

    @Test
    void whatEndedWhileItsHandlerReturnsGivesItsPermitBack() throws Exception {
        held.release(Outcome.OK);
        MockHttpServletRequest ended = new MockHttpServletRequest("GET", "/orders") {
            @Override
            public AsyncContext getAsyncContext() {
                throw new IllegalStateException("it is over");
            }
        };
        ended.setAsyncSupported(true);
        FilterChain chain = (in, out) -> in.startAsync();
        filter.doFilter(ended, response, chain);
        assertEquals(0, fence.inFlight());
    }
}
