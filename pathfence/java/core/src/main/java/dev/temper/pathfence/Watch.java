// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.BasicFileAttributes;
import java.nio.file.attribute.FileTime;
import java.util.Objects;
import java.util.Optional;
import java.util.function.Consumer;

/** Puts a configuration file in force when it changes. */
final class Watch {
    /** Tells one version of a file from another; all null where there is none. */
    private record Version(Object key, long size, FileTime modified) {
        static Version of(Path file) {
            try {
                BasicFileAttributes a = Files.readAttributes(file, BasicFileAttributes.class);
                return new Version(a.fileKey(), a.size(), a.lastModifiedTime());
            } catch (IOException e) {
                return new Version(null, -1, null);
            }
        }
    }

    private final Path file;
    private final Consumer<Config> reload;
    private final Consumer<Optional<String>> tell;
    private String wrong; // what was told of it; null: it is in force
    private Version seen; // null: the first look reloads, since the file may have changed since it was read

    Watch(Path file, Consumer<Config> reload, Consumer<Optional<String>> tell) {
        this.file = file;
        this.reload = reload;
        this.tell = tell;
    }

    /** What was wrong may have been beside the file, and right by now: that is told only where it is news. */
    void look() {
        Version v = Version.of(file);
        boolean changed = !v.equals(seen);
        if (!changed && wrong == null) return;
        seen = v;
        String before = wrong;
        wrong = null;
        try {
            reload.accept(Config.load(file));
        } catch (ConfigException e) {
            wrong = e.getMessage();
        }
        if (changed || !Objects.equals(wrong, before)) tell.accept(Optional.ofNullable(wrong));
    }
}
