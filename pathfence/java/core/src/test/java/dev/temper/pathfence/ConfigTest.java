// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.FileTime;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** The configuration's file, environment and bounds. */
class ConfigTest {
    @TempDir
    private Path folder;

    private Path write(String text) throws IOException {
        // At once, as editors and ConfigMaps do: whoever watches the file sees no half of it.
        Path whole = Files.writeString(folder.resolve("new"), text);
        return Files.move(
                whole,
                folder.resolve("pathfence.json"),
                StandardCopyOption.ATOMIC_MOVE,
                StandardCopyOption.REPLACE_EXISTING);
    }

    private static String refusal(String json) {
        return assertThrows(ConfigException.class, () -> Config.parse(json).checked()).getMessage();
    }

    @Test
    void aFileAndTheEnvironmentConfigure() throws IOException {
        Path file = write("{\"workers\": 3, \"without\": {\"no_lend\": true},"
                + " \"classes\": [{\"name\": \"a\", \"keys\": [\"a\\u002fb\"], \"weight\": 200}]}");
        Config c = Config.load(null, Map.of("PATHFENCE_CONFIG", file.toString()));
        assertEquals(3, c.workers());
        assertEquals(new ClassConfig("a", List.of("a/b"), 200, 1_000_000_000, 0, 0), c.classes().get(0));
        assertTrue(c.without().lend());
        c = Config.load(file, Map.of("PATHFENCE_WORKERS", "5", "PATHFENCE_OFF", "1"));
        assertEquals(5, c.workers());
        assertTrue(c.off());
        assertEquals(7, Config.load(null, Map.of("PATHFENCE_WORKERS", "7")).workers());
    }

    @ParameterizedTest
    @CsvSource({"five,1", "5,yes", "4097,0", "1.5,0", "0,0"})
    void whatTheEnvironmentSaysMustBeValid(String workers, String off) {
        Map<String, String> environment = Map.of("PATHFENCE_WORKERS", workers, "PATHFENCE_OFF", off);
        assertThrows(ConfigException.class, () -> Config.load(null, environment));
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "", "{", "[]", "null", "{\"workers\": 1.5}", "{\"workers\": 1e3}", "{\"workers\": +1}",
                "{\"workers\": 1, \"wrokers\": 2}", "{\"workers\": 1, \"workers\": 2}", "{\"workers\": \"1\"}",
                "{\"workers\": 1} x", "{\"workers\": 99999999999999999999}", "{\"workers\": null}", "{\"workers\": 0}",
                "{\"workers\": 4097}", "{\"workers\": -1}", "{\"workers\": 1, \"window_ns\": 999999}",
                "{\"workers\": 1, \"gamma_permille\": -1}", "{\"workers\": 1, \"unknown_buckets\": 33}",
                "{\"workers\": 1, \"off\": 1}", "{\"workers\": 1, \"without\": {\"no_such\": true}}",
                "{\"workers\": 1, \"classes\": [{\"name\": \"~a\"}]}", "{\"workers\": 1, \"classes\": [{}]}",
                "{\"workers\": 1, \"classes\": [{\"name\": \"a\"}, {\"name\": \"a\"}]}",
                "{\"workers\": 1, \"classes\": [{\"name\": \"a\", \"keys\": [\"k\", \"k\"]}]}",
                "{\"workers\": 1, \"classes\": [{\"name\": \"a\", \"keys\": [\"no key\"]}]}",
                "{\"workers\": 1, \"classes\": [{\"name\": \"a\", \"weight\": 1001}]}",
                "{\"workers\": 1, \"classes\": [{\"name\": \"a\", \"colour\": 1}]}",
                "{\"workers\": 1, \"classes\": [{\"name\": \"a\\x\"}]}", "{\"workers\": 1, \"off\": truth}"
            })
    void whatIsNotValidIsRefused(String json) {
        refusal(json);
    }

    @Test
    void aRefusalNamesTheValueAndItsBounds() throws IOException {
        assertEquals("workers is 4097; it must be 1 to 4096", refusal("{\"workers\": 4097}"));
        assertEquals("the configuration has no key \"wrokers\"", refusal("{\"wrokers\": 2}"));
        assertEquals("workers is of the wrong kind", refusal("{\"workers\": true}"));
        assertEquals("JSON: expected a whole number of 64 bits, at character 16", refusal("{\"workers\": 1.5}"));
        Path file = write("{\"workers\": 0}");
        String of = assertThrows(ConfigException.class, () -> Config.load(file, Map.of())).getMessage();
        assertEquals(file + ": workers is 0; it must be 1 to 4096", of);
        assertThrows(ConfigException.class, () -> Config.load(folder.resolve("none"), Map.of()));
    }

    /** A file that is watched is put in force when it changes, and what is wrong with it is told. */
    @Test
    @Timeout(120)
    void aFileThatIsWatched() throws Exception {
        Path file = write("{\"workers\": 2}");
        BlockingQueue<Optional<String>> told = new LinkedBlockingQueue<>();
        Config c = Config.load(file, Map.of());
        try (Fence fence = Fence.builder(c).watch(file, told::add).build()) {
            assertEquals(Optional.empty(), told.take());
            write("{\"workers\": 0}");
            Optional<String> error = told.take();
            assertEquals(Optional.of(file + ": workers is 0; it must be 1 to 4096"), error);
            assertEquals(error, fence.watchError());
            write("{\"workers\": 16, \"classes\": [{\"name\": \"later\"}]}");
            assertEquals(Optional.empty(), told.take());
            assertEquals(Optional.empty(), fence.watchError());
            assertEquals(16, fence.config().workers());
            assertEquals("later", fence.states().get(0).name());
        }
    }

    /** What was wrong beside the file may be right without a change of it. */
    @Test
    void aReadingThatFailedIsTriedAgain() throws Exception {
        AtomicReference<String> wrong = new AtomicReference<>("not now");
        List<Optional<String>> told = new ArrayList<>();
        Watch watch = new Watch(
                write("{\"workers\": 2}"),
                c -> {
                    if (wrong.get() != null) throw new ConfigException(wrong.get());
                },
                told::add);
        watch.look();
        watch.look();
        wrong.set(null);
        watch.look();
        watch.look();
        assertEquals(List.of(Optional.of("not now"), Optional.empty()), told);
    }

    /** A file may have changed, and its size and time may not. */
    @Test
    void aChangeThatDoesNotShow() throws Exception {
        List<Config> loaded = new ArrayList<>();
        Path file = write("{\"workers\": 2}");
        FileTime written = Files.getLastModifiedTime(file);
        Watch watch = new Watch(file, loaded::add, told -> {});
        watch.look();
        Files.writeString(file, "{\"workers\": 3}");
        Files.setLastModifiedTime(file, written);
        watch.look();
        watch.look();
        assertEquals(List.of(2L, 3L), loaded.stream().map(Config::workers).toList());
    }

    /** Nobody calls tick() here: the fence's own thread finds that the request has expired. */
    @Test
    @Timeout(120)
    void theTickerRuns() throws Exception {
        try (Fence fence = Fence.of(Config.builder(1).build())) {
            Permit held = fence.acquire(Call.of("a"));
            ShedException e =
                    assertThrows(ShedException.class, () -> fence.acquire(new Call("a", 30_000_000, 0)));
            assertEquals("expired", e.reason());
            held.release(Outcome.OK);
        }
    }
}
