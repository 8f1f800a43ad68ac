// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence;

import dev.temper.pathfence.internal.Names;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/**
 * The decisions of the specification: events in, decisions out. It has no clock, no thread and no lock;
 * {@link Fence} is the engine that a service uses. Times are nanoseconds, 0 or more, of a clock that the caller reads;
 * one that steps back stands still.
 */
final class Core {
    private final Ledger ledger;
    private final Lending lending;
    private final Suspects suspects;
    private final Keys keys;
    private final Pump pump;
    private final Control control;
    /** What the configuration said last of being off, whoever switched since. */
    private boolean saidOff;

    private long windowStart;
    private long order;

    /**
     * Starts with a configuration.
     *
     * @param config the configuration; defaults are filled in
     * @param unbounded whether nothing is bounded while it is off
     * @param now the time
     * @throws ConfigException where the configuration is not valid
     */
    Core(Config config, boolean unbounded, long now) {
        ledger = new Ledger(config.checked(), unbounded, now);
        suspects = new Suspects(ledger);
        lending = new Lending(ledger, suspects);
        keys = new Keys(ledger, lending, suspects);
        pump = new Pump(ledger, lending);
        control = new Control(ledger, lending, suspects);
        saidOff = config.off();
        windowStart = now;
        configure();
    }

    /** Puts the configuration in force; the classes of an earlier one stay, without keys. */
    private void configure() {
        keys.clearConfigured();
        for (ClassConfig k : ledger.config.classes()) {
            PathClass known = ledger.named(k.name());
            PathClass c = known == null ? ledger.add(k, Set.of()) : known;
            c.weight = k.weight();
            c.aim(k.target());
            for (String key : k.keys()) keys.configure(key, c);
        }
        for (Limited l : ledger.limits()) l.limit = Math.min(l.limit, ledger.config.workers());
        for (PathClass c : ledger.classes) {
            if (c.unknown) c.limit = ledger.unknownLimit();
            if (c.unknown || c.learned) c.aim(ledger.config.target());
        }
        lending.shareOut();
    }

    /**
     * A request comes.
     *
     * @param now the time
     * @param in what is known of it
     * @return what was decided
     */
    List<Decision> arrive(long now, Arrival in) {
        advance(now);
        if (ledger.requests.containsKey(in.id())) return ledger.take();
        Request parent = in.parent() == 0 ? null : ledger.running(in.parent());
        if (parent != null) inherit(in.id(), parent);
        else admit(in);
        return ledger.take();
    }

    private void admit(Arrival in) {
        PathClass c = keys.classOf(in.key());
        Request r = new Request(in.id(), in.key(), c);
        r.order = ++order;
        r.arrived = ledger.now;
        long target = ledger.now + c.target;
        r.deadline = in.deadline() != 0 ? in.deadline() : target;
        if (in.deadline() != 0 && in.shortens()) {
            r.expires = target;
            r.deadline = Math.min(r.deadline, target);
        }
        r.depth = Math.max(in.depth(), 0);
        ledger.waits(r);
        lending.arrived(c);
        if (r.depth > Pump.MAX_DEPTH) {
            ledger.shed(r, "depth");
            return;
        }
        if (r.depth > 0) pump.enqueueNested(r);
        else pump.enqueue(c, r);
        lending.noteDemand(c);
        pump.pump();
    }

    /** Runs a part of a request on that request's permit. */
    private void inherit(long id, Request parent) {
        Request root = parent.root == null ? parent : parent.root;
        root.sharers++;
        Request r = new Request(id, root.key, root.of);
        r.root = root;
        ledger.requests.put(id, r);
        ledger.granted(r, false, "inherited");
    }

    /**
     * A request that went on without a worker takes one again. It is on a thread already, so it waits for nothing.
     *
     * @param now the time
     * @param id the request
     * @param key its key
     * @return what was decided
     */
    List<Decision> resume(long now, long id, String key) {
        advance(now);
        if (ledger.requests.containsKey(id)) return ledger.take();
        Request r = new Request(id, key, keys.classOf(key));
        r.order = ++order;
        r.arrived = ledger.now;
        r.deadline = ledger.now + r.of.target;
        ledger.waits(r);
        pump.grant(r, false, "resumed");
        return ledger.take();
    }

    /**
     * A request ends, or one that waits is withdrawn.
     *
     * @param now the time
     * @param id the request; one that is not known is ignored
     * @param outcome how it ended
     * @return what was decided
     */
    List<Decision> done(long now, long id, Outcome outcome) {
        advance(now);
        Request r = ledger.requests.get(id);
        if (r == null || r.done) return ledger.take();
        if (r.waits) {
            ledger.withdraw(r);
            pump.unqueue(r);
            pump.pump();
            return ledger.take();
        }
        Request owner = r;
        if (r.root != null) {
            owner = r.root;
            ledger.requests.remove(id);
        } else {
            r.done = true;
            r.outcome = outcome;
        }
        if (--owner.sharers == 0) {
            ledger.requests.remove(owner.id);
            release(owner);
            pump.pump();
        }
        return ledger.take();
    }

    private void release(Request r) {
        PathClass c = r.of;
        c.touch(ledger.now);
        ledger.hold(c, -1);
        lending.turned(c);
        boolean left = r.outcome == Outcome.CANCEL;
        if (left && ledger.now > Math.max(r.deadline, r.expires)) c.missed++; // its client has waited in vain
        if (left || hurried(r)) return;
        ledger.turns++;
        // What is over in less than half of the usual time without success was no work like the others'.
        if (r.outcome == Outcome.LIGHT && 2 * (ledger.now - r.granted) < c.hold) c.window.light++;
        else finished(c, r);
        if (r.outcome != Outcome.FAIL) keys.completed(r.key);
    }

    /**
     * Whether a request has ended as it did because a peer that is not trusted has set it a time that was too short: late,
     * or failed, as what it calls does when the time is over. Such a peer could make a path look slow.
     */
    private boolean hurried(Request r) {
        if (ledger.now > r.expires) return false;
        boolean over = ledger.now > r.deadline;
        if (r.outcome == Outcome.FAIL) return over || 8 * (r.deadline - ledger.now) <= r.deadline - r.arrived;
        return r.outcome == Outcome.OK && over;
    }

    private void finished(PathClass c, Request r) {
        c.finished(ledger.now, r);
        suspects.judge(c, r.outcome != Outcome.FAIL && ledger.now <= r.deadline);
    }

    /**
     * A request in flight uses a downstream edge.
     *
     * @param now the time
     * @param id the request, or a part of one
     * @param edge the edge's name; one that is not valid is ignored
     * @return what was decided
     */
    List<Decision> edge(long now, long id, String edge) {
        advance(now);
        Request r = ledger.running(id);
        if (r != null && Names.valid(edge)) keys.edge(r.root == null ? r : r.root, edge);
        return ledger.take();
    }

    /**
     * Time passes. Due every quarter of a window.
     *
     * @param now the time
     * @return what was decided
     */
    List<Decision> tick(long now) {
        advance(now);
        if (!ledger.config.off()) pump.sweep();
        pump.pump();
        return ledger.take();
    }

    /**
     * Puts another configuration in force, under load.
     *
     * @param now the time
     * @param wanted the configuration; defaults are filled in
     * @return what was decided, and whether the configuration was refused
     */
    Reload reload(long now, Config wanted) {
        advance(now);
        Config config;
        try {
            config = wanted.checked();
        } catch (ConfigException e) {
            return new Reload(ledger.take(), e.getMessage());
        }
        long named = ledger.classes.size() - ledger.buckets - keys.learnedClasses();
        long added = config.classes().stream().filter(k -> ledger.named(k.name()) == null).count();
        if (named + added > Config.MAX_NAMED)
            return new Reload(
                    ledger.take(),
                    named + " classes were named since the start and " + added + " are new; at most " + Config.MAX_NAMED
                            + " fit: take names that were there, or restart the service");
        control.emptySamples();
        for (Limited l : ledger.limits()) if (l.limit == ledger.config.workers()) l.limit = config.workers();
        ledger.config = config.off() == saidOff ? config.withOff(ledger.config.off()) : config;
        saidOff = config.off();
        configure();
        pump.pump();
        return new Reload(ledger.take(), null);
    }

    /**
     * What came of a reload.
     *
     * @param decisions what was decided
     * @param refused why the configuration is not in force, or null if it is
     */
    record Reload(List<Decision> decisions, String refused) {}

    /**
     * Switches the fence off or on. Off, the service has its plain pool back.
     *
     * @param now the time
     * @param off whether it is to be off
     * @return what was decided
     */
    List<Decision> off(long now, boolean off) {
        advance(now);
        ledger.config = ledger.config.withOff(off);
        control.emptySamples();
        pump.pump();
        return ledger.take();
    }

    /**
     * Brings the clock forward, and closes a window that is over. A clock that goes back stands still. Where nothing is
     * heard for long, not even who ticks, it is the process that stands still.
     */
    private void advance(long now) {
        long silence = Math.max(0, now - ledger.now);
        ledger.heard += Math.min(silence, ledger.config.stall() / 2);
        if (silence > ledger.config.window() / 2) control.stoodStill();
        ledger.now += silence;
        long length = ledger.now - windowStart;
        if (length < ledger.config.window()) return;
        control.closeWindow(length);
        windowStart = ledger.now;
    }

    /**
     * What metrics show.
     *
     * @return the classes in their order, buckets that were never used left out
     */
    List<ClassState> states() {
        Map<PathClass, List<String>> shown = keys.shown();
        return ledger.classes.stream()
                .filter(Core::isShown)
                .map(c -> c.state(List.copyOf(shown.getOrDefault(c, List.of()))))
                .toList();
    }

    /** What metrics, which ask for each by itself, show of a class: without its keys, which take a look at all keys. */
    Optional<ClassState> state(String name) {
        return ledger.classes.stream()
                .filter(c -> c.name.equals(name) && isShown(c))
                .findFirst()
                .map(c -> c.state(List.of()));
    }

    private static boolean isShown(PathClass c) {
        return !c.unknown || c.granted + c.shed > 0 || !c.queue.isEmpty();
    }

    /** In what time a class's requests will have been served: (waiting + in flight) x hold / limit. */
    long drain(String key) {
        ClassState s = keys.classOf(key).state(List.of());
        return (s.queued() + s.inFlight()) * s.hold() / Math.max(1, s.limit());
    }

    /** The name of the class that requests of a key are in now. */
    String className(String key) {
        return keys.classOf(key).name;
    }

    /**
     * The names of all classes.
     *
     * @return buckets first, then the others as they came; there are ever only more
     */
    List<String> classNames() {
        return ledger.classes.stream().map(c -> c.name).toList();
    }

    /**
     * How many classes there are, buckets included.
     *
     * @return at most 128
     */
    int classCount() {
        return ledger.classes.size();
    }

    /** The class of a request in flight. */
    PathClass classOf(long id) {
        return ledger.running(id).of;
    }

    /**
     * How many workers are taken.
     *
     * @return the permits that are out
     */
    long inFlight() {
        return ledger.inFlight;
    }

    /**
     * How many requests wait.
     *
     * @return those in all queues
     */
    long waiting() {
        return ledger.waiting;
    }

    /**
     * The configuration in force.
     *
     * @return it, with its defaults
     */
    Config config() {
        return ledger.config;
    }
}
