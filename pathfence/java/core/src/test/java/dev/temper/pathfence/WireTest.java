// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.HashMap;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What travels with a request: ../../spec/wire.md. */
class WireTest {
    private static final long MS = 1_000_000;
    private static final PathContext FULL = new PathContext("home.read", 240 * MS, "front*1;shared*2");

    @Test
    void everyFormCarriesAll() {
        Map<String, String> values = new HashMap<>(Map.of("other", "x"));
        FULL.write(values);
        assertEquals(4, values.size());
        assertEquals(FULL, PathContext.read(values));
        PathContext.NONE.write(values);
        assertEquals(Map.of("other", "x"), values);
        Map<String, String> http = new HashMap<>();
        FULL.writeHttp(http::put);
        assertEquals(Map.of("x-pf-path", "home.read", "x-pf-deadline", "240", "x-pf-visits", "front*1;shared*2"), http);
        assertEquals(FULL, PathContext.readHttp(http::get));
        assertEquals(FULL, Baggage.read("a=b, " + Baggage.write(FULL) + " ,c=d;p=1"));
    }

    @Test
    void headersComeBeforeBaggage() {
        Map<String, String> http = Map.of(
                "x-pf-path", "header",
                "baggage", "pf.path=baggage,pf.deadline=7,pf.path=second,pf.visits=s%2a1%3bt%2A2");
        assertEquals(new PathContext("header", 7 * MS, "s*1;t*2"), PathContext.readHttp(http::get));
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "a b", "a!b", "é", "a*1"})
    void aPathThatIsNotValidIsNotThere(String path) {
        assertEquals("", PathContext.read(path, null, null).path());
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "0", "-5", "+5", "5x", "1e3", "1234567890", "٥"})
    void aDeadlineThatIsNotValidIsNotThere(String deadline) {
        assertEquals(0, PathContext.read(null, deadline, null).timeout());
    }

    @ParameterizedTest
    @ValueSource(
            strings = {"a", "a*0", "a*-1", "a b*1", "a*1;", "*1", "a*1;b*1;c*1;d*1;e*1;f*1;g*1;h*1;i*1"})
    void visitsThatAreNotValidAreNotThere(String visits) {
        assertEquals("", PathContext.read(null, null, visits).visits());
    }

    @Test
    void whatIsTooLongIsNotThere() {
        assertEquals("", PathContext.read("a".repeat(65), null, null).path());
        assertEquals(64, PathContext.read("a".repeat(64), null, null).path().length());
        assertEquals(600_000 * MS, PathContext.read(null, "999999999", null).timeout());
        assertEquals("", Baggage.read("pf.path=a" + ",m=1".repeat(64)).path());
        assertEquals("a", Baggage.read("pf.path=a" + ",m=1".repeat(63)).path());
        assertEquals("", Baggage.read("pf.path=a," + "x".repeat(8192)).path());
        assertEquals("a", Baggage.read("pf.path=a;ttl=1,pf.path=b").path());
    }

    @Test
    void chainsAreCountedAndTimeRuns() {
        assertEquals(2, FULL.depth("shared"));
        assertEquals(0, FULL.depth("elsewhere"));
        PathContext c = FULL.onward("shared", 40 * MS);
        assertEquals(new PathContext("home.read", 200 * MS, "front*1;shared*3"), c);
        c = c.onward("next", 500 * MS);
        assertEquals(1, c.timeout());
        assertEquals(1, c.depth("next"));
        for (String s : new String[] {"a", "b", "c", "d", "e", "f"}) c = c.onward(s, 0);
        assertEquals(0, c.depth("front"), "the first of eight went");
        assertEquals(3, c.depth("shared"));
        assertEquals(1, c.depth("f"));
        assertEquals(new PathContext("", 240 * MS, ""), FULL.untrusted());
        assertEquals(100 * MS, FULL.atMost(100 * MS).timeout());
        assertEquals(FULL, FULL.atMost(300 * MS).atMost(0));
        assertEquals(new Call("home.read", 240 * MS, 2, false), FULL.call("shared", true));
        assertEquals(new Call("home.read", 240 * MS, 0, true), FULL.call("", false));
    }
}
