// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence;

import dev.temper.pathfence.internal.Without;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** Reads configurations from JSON, files and the environment. */
final class ConfigReader {
    private ConfigReader() {}

    static Config load(Path file, Map<String, String> environment) {
        Path from = file;
        if (from == null && said(environment, "PATHFENCE_CONFIG")) from = Path.of(environment.get("PATHFENCE_CONFIG"));
        Config c = from == null ? Config.builder(0).build() : parseFile(from);
        long workers = c.workers();
        if (said(environment, "PATHFENCE_WORKERS"))
            workers = number("PATHFENCE_WORKERS", environment.get("PATHFENCE_WORKERS"));
        boolean off = c.off();
        if (said(environment, "PATHFENCE_OFF")) off = flag("PATHFENCE_OFF", environment.get("PATHFENCE_OFF"));
        Config whole = new Config(
                workers,
                c.window(),
                c.target(),
                c.grace(),
                c.gammaPermille(),
                c.queueMax(),
                c.stall(),
                c.panic(),
                c.unknownBuckets(),
                c.classes(),
                off,
                c.without());
        return from == null ? whole.checked() : naming(from, whole::checked);
    }

    private static Config parseFile(Path file) {
        String text;
        try {
            text = Files.readString(file);
        } catch (IOException e) {
            throw new ConfigException("cannot read " + file + ": " + e, e);
        }
        return naming(file, () -> parse(text));
    }

    /** Says in which file a value is wrong. */
    private static Config naming(Path file, java.util.function.Supplier<Config> read) {
        try {
            return read.get();
        } catch (ConfigException e) {
            throw new ConfigException(file + ": " + e.getMessage(), e);
        }
    }

    private static boolean said(Map<String, String> environment, String name) {
        String v = environment.get(name);
        return v != null && !v.isEmpty();
    }

    private static long number(String name, String value) {
        try {
            return Long.parseLong(value);
        } catch (NumberFormatException e) {
            throw new ConfigException(name + " is \"" + value + "\"; it must be a whole number", e);
        }
    }

    private static boolean flag(String name, String value) {
        if (!value.equals("0") && !value.equals("1"))
            throw new ConfigException(name + " is \"" + value + "\"; it must be 0 or 1");
        return value.equals("1");
    }

    static Config parse(String json) {
        Members m = new Members("the configuration", Json.parse(json));
        List<ClassConfig> classes = new ArrayList<>();
        for (Object k : m.list("classes")) classes.add(readClass(k));
        Config c = new Config(
                m.integer("workers"),
                m.integer("window_ns"),
                m.integer("target_ns"),
                m.integer("grace_ns"),
                m.integer("gamma_permille"),
                m.integer("queue_max"),
                m.integer("stall_ns"),
                m.integer("panic_ns"),
                m.integer("unknown_buckets"),
                classes,
                m.flag("off"),
                readWithout(m.object("without")));
        m.refuseOthers();
        return c;
    }

    private static ClassConfig readClass(Object value) {
        Members m = new Members("a class", value);
        List<String> keys = new ArrayList<>();
        for (Object key : m.list("keys")) keys.add(Members.as(String.class, "a key", key));
        ClassConfig k = new ClassConfig(
                m.text("name"), keys, m.integer("weight"), m.integer("target_ns"), m.integer("limit"), m.integer("hold_ns"));
        m.refuseOthers();
        return k;
    }

    private static Without readWithout(Object value) {
        Members m = new Members("without", value);
        Without w = new Without(
                m.flag("no_lend"),
                m.flag("no_protect"),
                m.flag("no_shed"),
                m.flag("no_newest"),
                m.flag("no_learn"),
                m.flag("no_excite"),
                m.flag("no_panic"));
        m.refuseOthers();
        return w;
    }

    /** An object's members, each asked for by name; what nobody asked for does not exist. */
    private static final class Members {
        private final String what;
        private final Map<?, ?> members;
        private final Set<String> known = new HashSet<>();

        Members(String what, Object value) {
            this.what = what;
            this.members = as(Map.class, what, value);
        }

        static <T> T as(Class<T> kind, String name, Object value) {
            if (!kind.isInstance(value)) throw new ConfigException(name + " is of the wrong kind");
            return kind.cast(value);
        }

        private <T> T get(Class<T> kind, String name, T missing) {
            known.add(name);
            return members.containsKey(name) ? as(kind, name, members.get(name)) : missing;
        }

        long integer(String name) {
            return get(Long.class, name, 0L);
        }

        boolean flag(String name) {
            return get(Boolean.class, name, false);
        }

        String text(String name) {
            return get(String.class, name, "");
        }

        List<?> list(String name) {
            return get(List.class, name, List.of());
        }

        Object object(String name) {
            return get(Map.class, name, Map.of());
        }

        void refuseOthers() {
            for (Object name : members.keySet())
                if (!known.contains(name)) throw new ConfigException(what + " has no key \"" + name + "\"");
        }
    }
}
