// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Objects;
import java.util.Optional;
import java.util.function.Consumer;

/** Puts a configuration file in force when it changes. */
final class Watch {
    private final Path file;
    private final Consumer<Config> reload;
    private final Consumer<Optional<String>> tell;
    private String wrong; // what was told of it; null: it is in force
    private byte[] seen; // as it was read last: its time and size may stay the same when it changes; null: not looked at yet

    Watch(Path file, Consumer<Config> reload, Consumer<Optional<String>> tell) {
        this.file = file;
        this.reload = reload;
        this.tell = tell;
    }

    /** What was wrong may have been beside the file, and right by now: that is told only where it is news. */
    void look() {
        byte[] now = bytesOf(file);
        boolean changed = !Arrays.equals(now, seen);
        if (!changed && wrong == null) return;
        seen = now;
        String before = wrong;
        wrong = null;
        try {
            reload.accept(Config.load(file));
        } catch (ConfigException e) {
            wrong = e.getMessage();
        }
        if (changed || !Objects.equals(wrong, before)) tell.accept(Optional.ofNullable(wrong));
    }

    /** None where it cannot be read, which loading it tells. */
    private static byte[] bytesOf(Path file) {
        try {
            return Files.readAllBytes(file);
        } catch (IOException e) {
            return new byte[0];
        }
    }
}
