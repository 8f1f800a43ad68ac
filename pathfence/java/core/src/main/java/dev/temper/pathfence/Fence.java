// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;
import java.util.function.LongSupplier;

/**
 * The engine that a service uses: the core behind one lock, with a clock, a ticker, and permits.
 *
 * <p>A request asks for a permit before it takes a worker. {@link #submit} parks it without a thread; {@link #acquire}
 * blocks the caller, platform thread or virtual. Callbacks run outside the lock, on whichever thread brought the decision
 * about, the ticker's included: they must not block, and {@link #acquire} in them is refused. One that throws gives its
 * permit back as failed, and what it threw goes to {@link Builder#errors}: so hand a permit over last.
 */
public final class Fence implements AutoCloseable {
    private static final System.Logger LOG = System.getLogger(Fence.class.getName());

    private static final int LOOKS = 50; // at a lock that is taken, before the thread sleeps: a microsecond or two

    /** Something to do with the core, at a time. */
    interface Action {
        List<Decision> on(Core core, long now);
    }

    private record Waiter(long depth, Consumer<Permit> granted, Consumer<String> refused) {}

    /** A grant, to be delivered. */
    private record Granted(Fence fence, Waiter waiter, Permit permit) implements Runnable {
        @Override
        public void run() {
            boolean took = false;
            try {
                waiter.granted.accept(permit);
                took = true;
            } catch (Throwable e) {
                fence.failed(e);
            } finally {
                if (!took) permit.close();
            }
        }
    }

    private final ReentrantLock lock = new ReentrantLock();
    private final LongSupplier clock;
    private final Consumer<Throwable> errors;
    private final Core core;
    private final Map<Long, Waiter> waiters = new HashMap<>();
    private final List<Consumer<String>> classListeners = new ArrayList<>();
    private int classesTold;
    private long lastId;
    private boolean closed;
    private volatile String watchError;
    private final Ticker ticker; // null: somebody calls tick()

    private Fence(Builder b) {
        clock = b.clock;
        errors = b.errors;
        core = new Core(b.config, b.unbounded, clock.getAsLong());
        classesTold = core.classCount();
        Optional<Watch> watch = Optional.ofNullable(b.watch).map(file -> new Watch(file, this::reload, told -> {
            watchError = told.orElse(null);
            guarded(() -> b.reloaded.accept(told));
        }));
        ticker = b.ticker ? new Ticker(this, watch) : null;
        if (ticker != null) ticker.start();
    }

    /**
     * A fence with the process's clock and a ticker of its own.
     *
     * @param config the configuration
     * @return the fence; close it to end its thread
     * @throws ConfigException where the configuration is not valid
     */
    public static Fence of(Config config) {
        return builder(config).build();
    }

    /**
     * Starts a fence that differs from {@link #of}.
     *
     * @param config the configuration
     * @return what to set the rest with
     */
    public static Builder builder(Config config) {
        return new Builder(config);
    }

    /** How a fence is to be. */
    public static final class Builder {
        private static final long ORIGIN = System.nanoTime();

        private final Config config;
        private LongSupplier clock = () -> System.nanoTime() - ORIGIN;
        private boolean ticker = true;
        private boolean unbounded;
        private Path watch;
        private Consumer<Optional<String>> reloaded = told -> {};
        private Consumer<Throwable> errors = e -> LOG.log(System.Logger.Level.ERROR, "a callback failed", e);

        private Builder(Config config) {
            this.config = config;
        }

        /**
         * Sets the clock.
         *
         * @param nanos gives nanoseconds, 0 or more, of a monotonic clock; it is called under the fence's lock
         * @return this
         */
        public Builder clock(LongSupplier nanos) {
            clock = nanos;
            return this;
        }

        /**
         * Leaves it to the caller to call {@link Fence#tick} every quarter of a window. No file is watched then.
         *
         * @return this
         */
        public Builder withoutTicker() {
            ticker = false;
            return this;
        }

        /**
         * Says that it is not the workers that bound requests without the fence: threads of a server's, or virtual ones, which
         * nobody bounds. Switched off, the fence bounds nothing then. Otherwise it is as a pool of as many threads as workers.
         *
         * @return this
         */
        public Builder unbounded() {
            unbounded = true;
            return this;
        }

        /**
         * Watches a configuration file: it is put in force when it changes, at most once a second, with what the
         * environment says on top.
         *
         * @param file the file
         * @param told called on the ticker's thread with each new version: why it is not in force, or nothing
         * @return this
         */
        public Builder watch(Path file, Consumer<Optional<String>> told) {
            watch = file;
            reloaded = told;
            return this;
        }

        /**
         * Says where exceptions of callbacks go. Without it they are logged.
         *
         * @param to gets them; what it throws itself is logged
         * @return this
         */
        public Builder errors(Consumer<Throwable> to) {
            errors = to;
            return this;
        }

        /**
         * Starts the fence.
         *
         * @return it
         * @throws ConfigException where the configuration is not valid
         */
        public Fence build() {
            return new Fence(this);
        }
    }

    /** Does something with the core under the lock, and afterwards delivers what was decided. */
    void with(Action action) {
        List<Runnable> calls;
        lock();
        try {
            calls = calls(action.on(core, clock.getAsLong()));
        } finally {
            lock.unlock();
        }
        Delivery.deliver(calls);
    }

    /** Takes the lock, which others hold for a microsecond or two. To sleep and be woken takes ten times as long. */
    private void lock() {
        for (int i = 0; i < LOOKS; i++) {
            if (lock.tryLock()) return;
            Thread.onSpinWait();
        }
        lock.lock();
    }

    /** Whom to call, of what was decided. */
    private List<Runnable> calls(List<Decision> decisions) {
        boolean added = core.classCount() > classesTold;
        if (decisions.isEmpty() && !added) return List.of();
        List<Runnable> calls = new ArrayList<>(decisions.size());
        for (Decision d : decisions) addCall(d, calls);
        if (added) tellClasses(calls);
        return calls;
    }

    private void tellClasses(List<Runnable> calls) {
        List<String> names = core.classNames();
        for (String name : names.subList(classesTold, names.size()))
            for (Consumer<String> to : classListeners) calls.add(() -> guarded(() -> to.accept(name)));
        classesTold = names.size();
    }

    private void addCall(Decision d, List<Runnable> calls) {
        if (d.kind() != Decision.Kind.GRANT && d.kind() != Decision.Kind.SHED) return;
        Waiter w = waiters.remove(d.id());
        if (w == null) return; // a part of a request: share() has its permit already
        if (d.kind() == Decision.Kind.SHED) {
            calls.add(() -> guarded(() -> w.refused.accept(d.reason())));
            return;
        }
        calls.add(new Granted(this, w, new Permit(this, d.id(), core.classOf(d.id()), w.depth)));
    }

    /** Whoever throws in a callback has no caller here. It may be a checked exception: not every language declares them. */
    private void guarded(Runnable callback) {
        try {
            callback.run();
        } catch (Throwable e) {
            failed(e);
        }
    }

    private void failed(Throwable callback) {
        try {
            errors.accept(callback);
        } catch (Throwable e) {
            LOG.log(System.Logger.Level.ERROR, "a callback failed", callback);
            LOG.log(System.Logger.Level.ERROR, "so did who is told of it", e);
        }
    }

    /**
     * Asks for a permit, without a thread that waits. Exactly one of the two is called, once, possibly before this
     * returns; unless {@link #cancel} says that neither is.
     *
     * @param call the request
     * @param granted gets the permit, and has to see to it that it is released
     * @param refused gets the reason: {@code expired}, {@code late}, {@code full}, {@code depth}, or {@code closed}
     * @return for {@link #cancel}
     */
    public long submit(Call call, Consumer<Permit> granted, Consumer<String> refused) {
        return submit(call, 0, granted, refused);
    }

    /**
     * As {@link #submit(Call, Consumer, Consumer)}, for a request that may be a part of another. While that is in flight, the
     * part runs on its permit, at once and whatever its depth: the other waits for it, and would wait for ever if both
     * needed one.
     *
     * @param call the request
     * @param parent the other's {@link Permit#id}; 0: none
     * @param granted gets the permit, and has to see to it that it is released
     * @param refused gets the reason
     * @return for {@link #cancel}
     */
    public long submit(Call call, long parent, Consumer<Permit> granted, Consumer<String> refused) {
        Submission s = new Submission(call, parent, new Waiter(call.depth(), granted, refused));
        with(s);
        if (s.late) Delivery.deliver(List.of(() -> guarded(() -> refused.accept("closed"))));
        return s.ticket;
    }

    /** What {@link #submit} does under the lock. */
    private final class Submission implements Action {
        private final Call call;
        private final long parent;
        private final Waiter waiter;
        private long ticket;
        private boolean late; // the fence is closed

        private Submission(Call call, long parent, Waiter waiter) {
            this.call = call;
            this.parent = parent;
            this.waiter = waiter;
        }

        @Override
        public List<Decision> on(Core core, long now) {
            ticket = ++lastId;
            late = closed;
            if (closed) return List.of();
            waiters.put(ticket, waiter);
            long deadline = call.timeout() == 0 ? 0 : now + call.timeout();
            return core.arrive(now, new Arrival(ticket, call.key(), deadline, call.shortens(), call.depth(), parent));
        }
    }

    /**
     * Takes a permit again for a request that gave its own back while it went on without a worker. Its thread has begun, so
     * it waits for nothing, and there may be more permits out than there are workers.
     *
     * @param key the request's
     * @return the permit
     */
    public Permit resume(String key) {
        Permit[] again = new Permit[1];
        with((c, now) -> {
            long id = ++lastId;
            List<Decision> decided = c.resume(now, id, key);
            again[0] = new Permit(this, id, c.classOf(id), 0);
            return decided;
        });
        return again[0];
    }

    /**
     * The client went away.
     *
     * @param ticket what {@link #submit} returned
     * @return true if the request still waited, and neither callback will be called
     */
    public boolean cancel(long ticket) {
        boolean[] waited = new boolean[1];
        with((c, now) -> {
            waited[0] = waiters.remove(ticket) != null;
            return waited[0] ? c.done(now, ticket, Outcome.CANCEL) : List.of();
        });
        return waited[0];
    }

    /**
     * Waits for a permit.
     *
     * @param call the request
     * @return the permit
     * @throws ShedException if the request is refused
     * @throws InterruptedException if the thread is interrupted; the request is withdrawn then
     * @throws IllegalStateException inside of a callback, which would wait for itself
     */
    public Permit acquire(Call call) throws ShedException, InterruptedException {
        if (Delivery.underWay())
            throw new IllegalStateException("acquire() inside of a fence's callback; use submit() there");
        CompletableFuture<Permit> place = new CompletableFuture<>();
        long ticket = submit(
                call,
                permit -> {
                    if (!place.complete(permit)) permit.release(Outcome.CANCEL);
                },
                reason -> place.completeExceptionally(new ShedException(reason)));
        try {
            return place.get();
        } catch (ExecutionException e) {
            throw (ShedException) e.getCause();
        } catch (InterruptedException e) {
            // Granted meanwhile: nobody is left to use it.
            if (!cancel(ticket) && !place.cancel(false) && !place.isCompletedExceptionally())
                place.join().release(Outcome.CANCEL);
            throw e;
        }
    }

    /**
     * Does something with a permit that it waits for. What throws counts as failed.
     *
     * @param call the request
     * @param work what to do
     * @return what it gives
     * @throws ShedException if the request is refused
     * @throws Exception what the work throws; InterruptedException while it waits
     */
    public <T> T call(Call call, Callable<T> work) throws Exception {
        try (Permit permit = acquire(call)) {
            T result = work.call();
            permit.release(Outcome.OK);
            return result;
        }
    }

    Permit share(Permit root) {
        Permit[] part = new Permit[1];
        with((c, now) -> {
            if (root.released())
                throw new IllegalStateException(root + " was given back: a part of its request needs one of its own");
            part[0] = new Permit(this, ++lastId, root.of(), root.depth());
            return c.arrive(now, new Arrival(part[0].id(), null, 0, false, 0, root.id()));
        });
        return part[0];
    }

    /** Lets the fence look at its clock. Due every quarter of a window, where there is no ticker. */
    public void tick() {
        with(Core::tick);
    }

    /**
     * Puts another configuration in force, under load.
     *
     * @param config the configuration
     * @throws ConfigException where it is not valid; nothing has changed then
     */
    public void reload(Config config) {
        config.checked();
        String[] refused = new String[1];
        with((c, now) -> {
            Core.Reload r = c.reload(now, config);
            refused[0] = r.refused();
            return r.decisions();
        });
        if (refused[0] != null) throw new ConfigException(refused[0]);
    }

    /**
     * Switches the fence off or on. Off, what waits and what comes is served as by the plain pool; at once, where the fence is
     * {@linkplain Builder#unbounded() unbounded}.
     *
     * @param off whether it is to be off
     */
    public void off(boolean off) {
        with((c, now) -> c.off(now, off));
    }

    /** Refuses all that waits and all that comes ("closed"), and ends the ticker. Permits that are out may come back. */
    @Override
    public void close() {
        List<Runnable> calls = new ArrayList<>();
        lock.lock();
        try {
            closed = true;
            // Permits that come back later find nobody who waits.
            Map<Long, Waiter> left = new HashMap<>(waiters);
            waiters.clear();
            left.forEach((id, w) -> {
                core.done(clock.getAsLong(), id, Outcome.CANCEL);
                calls.add(() -> guarded(() -> w.refused.accept("closed")));
            });
        } finally {
            lock.unlock();
        }
        if (ticker != null) ticker.stop();
        Delivery.deliver(calls);
    }

    private <T> T reading(java.util.function.Function<Core, T> what) {
        lock.lock();
        try {
            return what.apply(core);
        } finally {
            lock.unlock();
        }
    }

    /**
     * What metrics show.
     *
     * @return the classes in their order, buckets that were never used left out
     */
    public List<ClassState> states() {
        return reading(Core::states);
    }

    /**
     * Asks to be told of classes, for metrics: of each that there is, now, and of each that is added, once.
     *
     * @param added gets the name; it must not block
     */
    public void onClass(Consumer<String> added) {
        List<String> known = new ArrayList<>();
        lock.lock();
        try {
            known.addAll(core.classNames().subList(0, classesTold));
            classListeners.add(added);
        } finally {
            lock.unlock();
        }
        known.forEach(added);
    }

    /**
     * What metrics show of one class, without its keys: {@link #states} has those.
     *
     * @param name the class
     * @return nothing where there is none, or only a bucket that was never used
     */
    public Optional<ClassState> state(String name) {
        return reading(c -> c.state(name));
    }

    /**
     * In what time the requests of a path's class that wait or are in flight will have been served, as far as that is
     * known.
     *
     * @param key the path's
     * @return nanoseconds; 0 where nothing is known
     */
    public long drain(String key) {
        return reading(c -> c.drain(key));
    }

    /**
     * The class of a path's requests, as far as it is known; the next one may be in another.
     *
     * @param key the path's
     * @return its name
     */
    public String className(String key) {
        return reading(c -> c.className(key));
    }

    /**
     * How many workers are taken.
     *
     * @return the permits that are out
     */
    public long inFlight() {
        return reading(Core::inFlight);
    }

    /**
     * How many requests wait.
     *
     * @return those in all queues
     */
    public long waiting() {
        return reading(Core::waiting);
    }

    /**
     * The configuration in force.
     *
     * @return it, with its defaults
     */
    public Config config() {
        return reading(Core::config);
    }

    /**
     * Whether the watched file's last version is in force.
     *
     * @return why it is not, or nothing
     */
    public Optional<String> watchError() {
        return Optional.ofNullable(watchError);
    }
}
