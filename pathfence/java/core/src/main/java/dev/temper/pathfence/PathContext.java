// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence;

import dev.temper.pathfence.internal.Names;
import java.util.Map;
import java.util.function.BiConsumer;
import java.util.function.Function;

/**
 * What travels with a request from hop to hop; the specification's wire has the forms and bounds. What breaks a rule is
 * as if it were not there.
 *
 * @param path the key; empty: none
 * @param timeout nanoseconds that are left, up to 600 s; 0: not said
 * @param visits which services the chain is in, as {@code name*count;name*count}; may be empty
 */
public record PathContext(String path, long timeout, String visits) {
    /** A request that says nothing. */
    public static final PathContext NONE = new PathContext("", 0, "");

    private static final long MS = 1_000_000;
    private static final long LONGEST = 600_000 * MS;
    private static final int MOST_DIGITS = 9;

    /**
     * Reads the three values.
     *
     * @param path the key, or null
     * @param deadline milliseconds that are left, as text, or null
     * @param visits which services the chain is in, or null
     * @return what of it is valid
     */
    public static PathContext read(String path, String deadline, String visits) {
        long left = number(deadline);
        return new PathContext(
                Names.valid(path) ? path : "",
                left > 0 ? Math.min(left * MS, LONGEST) : 0,
                Visits.read(visits).toString());
    }

    /** A decimal number without sign, 1 to 9 digits; -1 for anything else. */
    static long number(String text) {
        if (text == null || text.isEmpty() || text.length() > MOST_DIGITS) return -1;
        long n = 0;
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            if (c < '0' || c > '9') return -1;
            n = n * 10 + c - '0';
        }
        return n;
    }

    /**
     * Reads {@code pf.path}, {@code pf.deadline} and {@code pf.visits}.
     *
     * @param values by name
     * @return what of it is valid
     */
    public static PathContext read(Map<String, String> values) {
        return read(values.get("pf.path"), values.get("pf.deadline"), values.get("pf.visits"));
    }

    /**
     * Reads HTTP headers: {@code x-pf-path}, {@code x-pf-deadline}, {@code x-pf-visits}, and for what these do not say
     * W3C {@code baggage}.
     *
     * @param header gives a header by its name, several as one joined by commas where it is {@code baggage}; null if
     *     there is none
     * @return what of it is valid
     */
    public static PathContext readHttp(Function<String, String> header) {
        PathContext own = read(header.apply("x-pf-path"), header.apply("x-pf-deadline"), header.apply("x-pf-visits"));
        boolean complete = !own.path.isEmpty() && own.timeout > 0 && !own.visits.isEmpty();
        String baggage = complete ? null : header.apply("baggage");
        return baggage == null ? own : own.or(Baggage.read(baggage));
    }

    /**
     * Writes HTTP headers, those that have something to say.
     *
     * @param header takes a name and a value
     */
    public void writeHttp(BiConsumer<String, String> header) {
        if (!path.isEmpty()) header.accept("x-pf-path", path);
        if (timeout > 0) header.accept("x-pf-deadline", deadlineText());
        if (!visits.isEmpty()) header.accept("x-pf-visits", visits);
    }

    /**
     * Writes {@code pf.path}, {@code pf.deadline} and {@code pf.visits}; what there is not to say is removed.
     *
     * @param values where to put them
     */
    public void write(Map<String, String> values) {
        put(values, "pf.path", path);
        put(values, "pf.deadline", deadlineText());
        put(values, "pf.visits", visits);
    }

    private static void put(Map<String, String> values, String name, String value) {
        if (value.isEmpty()) values.remove(name);
        else values.put(name, value);
    }

    /**
     * What is left, as {@link #read(String, String, String)} takes it.
     *
     * @return milliseconds, rounded down, but at least 1; empty where there is no time to state
     */
    public String deadlineText() {
        return timeout > 0 ? Long.toString(Math.max(1, timeout / MS)) : "";
    }

    /**
     * This, and what it does not say from another.
     *
     * @param other what counts less
     * @return both
     */
    public PathContext or(PathContext other) {
        return new PathContext(
                path.isEmpty() ? other.path : path,
                timeout == 0 ? other.timeout : timeout,
                visits.isEmpty() ? other.visits : visits);
    }

    /**
     * How often the chain has been in a service before.
     *
     * @param service its name
     * @return 0 where it is not named
     */
    public long depth(String service) {
        return Visits.read(visits).of(service);
    }

    /**
     * What a service sends on.
     *
     * @param service its name; empty: no visit is added
     * @param used nanoseconds that it has used of the time
     * @return what is left
     */
    public PathContext onward(String service, long used) {
        long left = timeout == 0 ? 0 : Math.max(1, timeout - used);
        if (service.isEmpty()) return new PathContext(path, left, visits);
        Visits v = Visits.read(visits);
        v.add(service);
        return new PathContext(path, left, v.toString());
    }

    /**
     * What is left of a context from a peer that may not choose keys and depths.
     *
     * @return the time alone
     */
    public PathContext untrusted() {
        return new PathContext("", timeout, "");
    }

    /**
     * What is sent on of one from a peer whose word on time counts here only: whoever is called would believe it.
     *
     * @return the rest is the same
     */
    public PathContext withoutTime() {
        return new PathContext(path, 0, visits);
    }

    /**
     * With another key.
     *
     * @param key the key
     * @return the rest is the same
     */
    public PathContext withPath(String key) {
        return new PathContext(key, timeout, visits);
    }

    /**
     * With no more time than a transport says is left.
     *
     * @param nanos what is left; 0: not said
     * @return the shorter time
     */
    public PathContext atMost(long nanos) {
        if (nanos <= 0 || timeout > 0 && timeout <= nanos) return this;
        return new PathContext(path, Math.min(nanos, LONGEST), visits);
    }

    /**
     * What a fence is asked for.
     *
     * @param service the name of this service in visits; empty: re-entry is not seen
     * @param trusted whether the peer may ask for more time than the class's target
     * @return the call
     */
    public Call call(String service, boolean trusted) {
        return new Call(path, timeout, service.isEmpty() ? 0 : depth(service), !trusted);
    }
}
