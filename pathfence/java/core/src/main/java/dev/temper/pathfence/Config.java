// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence;

import dev.temper.pathfence.internal.Names;
import dev.temper.pathfence.internal.Without;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * All that an operator can set. Zero means the default. Times are in nanoseconds.
 *
 * @param workers 1 to 4096; the only value without a default: the pool, or permits where the server has no bound of
 *     its own
 * @param window 1 ms to 1 s, default 100 ms: what is measured is measured over such a time
 * @param target 1 ms to 600 s, default 1 s: deadline of requests that carry none
 * @param grace 0 to 10 s, default 20 ms: nothing is shed as late before
 * @param gammaPermille 1 to 10000, default 3000: how often its usual time a request should have left
 * @param queueMax 1 to 1048576, default 8192: the longest queue of a class; shorter where it could not be served in time
 * @param stall 1 ms to 60 s, default 20 ms: a downstream that answers nothing for so long may have stopped
 * @param panic 1 ms to 60 s, default 50 ms: a reserve that is unmet for so long has a consequence
 * @param unknownBuckets 1 to 32, default 8: classes for keys that are not known; that of the start stays
 * @param classes at most 32
 * @param off whether the fence is switched off: it then is a plain pool
 * @param without parts that are switched off, for benchmarks
 */
public record Config(
        long workers,
        long window,
        long target,
        long grace,
        long gammaPermille,
        long queueMax,
        long stall,
        long panic,
        long unknownBuckets,
        List<ClassConfig> classes,
        boolean off,
        Without without) {
    private static final long MS = 1_000_000;
    private static final long LONGEST = 600_000 * MS;
    private static final long MAX_WORKERS = 4096;
    private static final long DEFAULT_WEIGHT = 100;
    static final int MAX_CLASSES = 32;
    /** By this and earlier configurations. */
    static final int MAX_NAMED = 64;

    static final int MAX_LEARNED = 32;

    /** Copies the classes. */
    public Config {
        classes = List.copyOf(classes);
    }

    /**
     * Starts a configuration with defaults for all but the workers.
     *
     * @param workers 1 to 4096
     * @return what to set the rest with
     */
    public static Builder builder(long workers) {
        return new Builder(workers);
    }

    /**
     * Reads the JSON of a configuration; defaults are not filled in yet.
     *
     * @param json an object with the keys of the specification's table
     * @return the configuration, with 0 where nothing was said
     * @throws ConfigException where it is no JSON, has a key that does not exist, or a value of another kind
     */
    public static Config parse(String json) {
        return ConfigReader.parse(json);
    }

    /**
     * The configuration of a file, and what the environment says on top: PATHFENCE_CONFIG (the file, if none is
     * given), PATHFENCE_WORKERS, PATHFENCE_OFF (1 or 0).
     *
     * @param file the file, or null
     * @return the configuration, checked and with its defaults
     * @throws ConfigException where the file cannot be read or a value is not valid
     */
    public static Config load(Path file) {
        return load(file, System.getenv());
    }

    /**
     * As {@link #load(Path)}, with another environment than the process's.
     *
     * @param file the file, or null
     * @param environment variables by name
     * @return the configuration, checked and with its defaults
     * @throws ConfigException where the file cannot be read or a value is not valid
     */
    public static Config load(Path file, Map<String, String> environment) {
        return ConfigReader.load(file, environment);
    }

    /**
     * Fills in the defaults.
     *
     * @return the whole configuration
     * @throws ConfigException where a value is out of bounds
     */
    public Config checked() {
        Config c = new Config(
                bound("workers", workers, 1, MAX_WORKERS),
                bound("window_ns", or(window, 100 * MS), MS, 1000 * MS),
                bound("target_ns", or(target, 1000 * MS), MS, LONGEST),
                bound("grace_ns", or(grace, 20 * MS), 0, 10_000 * MS),
                bound("gamma_permille", or(gammaPermille, 3000), 1, 10_000),
                bound("queue_max", or(queueMax, 8192), 1, 1 << 20),
                bound("stall_ns", or(stall, 20 * MS), MS, 60_000 * MS),
                bound("panic_ns", or(panic, 50 * MS), MS, 60_000 * MS),
                bound("unknown_buckets", or(unknownBuckets, 8), 1, 32),
                classes,
                off,
                without);
        bound("the number of classes", classes.size(), 0, MAX_CLASSES);
        return c.withClasses(c.checkedClasses());
    }

    private List<ClassConfig> checkedClasses() {
        Set<String> names = new HashSet<>();
        Set<String> keys = new HashSet<>();
        List<ClassConfig> out = new ArrayList<>();
        for (ClassConfig k : classes) {
            if (k.name() != null && k.name().startsWith("~"))
                throw new ConfigException("class name \"" + k.name() + "\" begins with ~, as learned classes do");
            checkName("class name", k.name(), names);
            String of = "class " + k.name() + ": ";
            out.add(new ClassConfig(
                    k.name(),
                    k.keys(),
                    bound(of + "weight", or(k.weight(), DEFAULT_WEIGHT), 1, 1000),
                    bound(of + "target_ns", or(k.target(), target), MS, LONGEST),
                    bound(of + "limit", k.limit(), 0, MAX_WORKERS),
                    bound(of + "hold_ns", k.hold(), 0, LONGEST)));
            for (String key : k.keys()) checkName(of + "key", key, keys);
        }
        return out;
    }

    private static void checkName(String what, String name, Set<String> given) {
        if (!Names.valid(name))
            throw new ConfigException(what + " \"" + name + "\" is no name: it must be 1 to 64 of"
                    + " a-z A-Z 0-9 . _ / : + - ~, as in orders or GET:/orders/:id");
        if (!given.add(name)) throw new ConfigException(what + " \"" + name + "\" is given twice");
    }

    private Config withClasses(List<ClassConfig> other) {
        return new Config(
                workers, window, target, grace, gammaPermille, queueMax, stall, panic, unknownBuckets, other, off, without);
    }

    Config withOff(boolean other) {
        return new Config(
                workers, window, target, grace, gammaPermille, queueMax, stall, panic, unknownBuckets, classes, other,
                without);
    }

    private static long or(long value, long standard) {
        return value == 0 ? standard : value;
    }

    private static long bound(String name, long value, long low, long high) {
        if (value < low || value > high)
            throw new ConfigException(name + " is " + value + "; it must be " + low + " to " + high);
        return value;
    }

    /** Sets the values of a configuration one by one; each is described there. */
    public static final class Builder {
        private long workers;
        private long window;
        private long target;
        private long grace;
        private long gammaPermille;
        private long queueMax;
        private long stall;
        private long panic;
        private long unknownBuckets;
        private final List<ClassConfig> classes = new ArrayList<>();
        private boolean off;

        private Builder(long workers) {
            this.workers = workers;
        }

        /** Sets the workers. */
        public Builder workers(long count) {
            workers = count;
            return this;
        }

        /** Sets the window. */
        public Builder window(long nanos) {
            window = nanos;
            return this;
        }

        /** Sets the target. */
        public Builder target(long nanos) {
            target = nanos;
            return this;
        }

        /** Sets the grace. */
        public Builder grace(long nanos) {
            grace = nanos;
            return this;
        }

        /** Sets the margin's factor. */
        public Builder gammaPermille(long permille) {
            gammaPermille = permille;
            return this;
        }

        /** Sets the longest queue. */
        public Builder queueMax(long count) {
            queueMax = count;
            return this;
        }

        /** Sets when a downstream counts as stalled. */
        public Builder stall(long nanos) {
            stall = nanos;
            return this;
        }

        /** Sets when an unmet reserve has a consequence. */
        public Builder panic(long nanos) {
            panic = nanos;
            return this;
        }

        /** Sets the number of buckets. */
        public Builder unknownBuckets(long count) {
            unknownBuckets = count;
            return this;
        }

        /** Adds a class. */
        public Builder add(ClassConfig k) {
            classes.add(k);
            return this;
        }

        /** Switches the fence off from the start. */
        public Builder off(boolean isOff) {
            off = isOff;
            return this;
        }

        /** The configuration as it was set, not checked yet. */
        public Config build() {
            return new Config(
                    workers, window, target, grace, gammaPermille, queueMax, stall, panic, unknownBuckets, classes, off,
                    Without.NOTHING);
        }
    }
}
