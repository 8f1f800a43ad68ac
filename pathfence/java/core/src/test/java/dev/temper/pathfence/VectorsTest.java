// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.stream.Stream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Replays the test vectors of ../../spec/vectors: the core decides exactly as the model does. */
class VectorsTest {
    private static final Path FOLDER = Path.of("..", "..", "spec", "vectors");

    static Stream<Path> vectors() throws IOException {
        try (Stream<Path> files = Files.list(FOLDER)) {
            List<Path> found =
                    files.filter(f -> f.toString().endsWith(".json")).sorted().toList();
            assertTrue(found.size() >= 41, found.size() + " vectors in " + FOLDER);
            return found.stream();
        }
    }

    @ParameterizedTest
    @MethodSource("vectors")
    void replays(Path file) throws IOException {
        JsonObject vector = JsonParser.parseString(Files.readString(file)).getAsJsonObject();
        Core core = new Core(Config.parse(vector.get("config").toString()), false, 0);
        JsonArray steps = vector.getAsJsonArray("steps");
        assertTrue(steps.size() > 0, "it has no steps");
        for (int i = 0; i < steps.size(); i++) {
            JsonObject step = steps.get(i).getAsJsonObject();
            assertEquals(wanted(step), play(core, step), "step " + i + ": " + step);
        }
    }

    private static String wanted(JsonObject step) {
        StringBuilder out = new StringBuilder();
        for (JsonElement d : list(step, "then")) out.append(show(d.getAsJsonObject())).append('\n');
        for (JsonElement s : list(step, "states")) out.append(showState(s.getAsJsonObject())).append('\n');
        if (is(step, "refused")) out.append("refused\n");
        return out.toString();
    }

    private static String play(Core core, JsonObject s) {
        long at = number(s, "at");
        long id = number(s, "id");
        StringBuilder out = new StringBuilder();
        List<Decision> decisions = new ArrayList<>();
        switch (text(s, "do")) {
            case "arrive" -> decisions = core.arrive(
                    at,
                    new Arrival(
                            id,
                            text(s, "key"),
                            number(s, "deadline"),
                            is(s, "shortens"),
                            number(s, "depth"),
                            number(s, "parent")));
            case "resume" -> decisions = core.resume(at, id, text(s, "key"));
            case "done" -> decisions = core.done(at, id, outcome(text(s, "outcome")));
            case "edge" -> decisions = core.edge(at, id, text(s, "edge"));
            case "tick" -> decisions = core.tick(at);
            case "off" -> decisions = core.off(at, true);
            case "on" -> decisions = core.off(at, false);
            case "reload" -> {
                Core.Reload r = core.reload(at, Config.parse(s.get("config").toString()));
                decisions = r.decisions();
                if (r.refused() != null) out.append("refused\n");
            }
            case "state" -> core.states().forEach(state -> out.append(show(state)).append('\n'));
            default -> throw new IllegalArgumentException("no step does " + text(s, "do"));
        }
        StringBuilder all = new StringBuilder();
        for (Decision d : decisions) all.append(show(d)).append('\n');
        return all.append(out).toString();
    }

    private static Outcome outcome(String s) {
        return s.isEmpty() ? Outcome.OK : Outcome.valueOf(s.toUpperCase(Locale.ROOT));
    }

    private static String show(Decision d) {
        String what = d.kind().name().toLowerCase(Locale.ROOT);
        return String.join(" ", what, "" + d.id(), d.className(), "" + d.lent(), d.reason(), "" + d.limit());
    }

    private static String show(JsonObject d) {
        boolean lent = is(d, "lent");
        return String.join(
                " ", text(d, "do"), "" + number(d, "id"), text(d, "class"), "" + lent, text(d, "reason"), "" + number(d, "limit"));
    }

    private static String show(ClassState s) {
        return s.name() + " " + List.of(
                        s.limit(), s.reserve(), s.inFlight(), s.queued(), s.lent(), s.granted(), s.shed(), s.missed(),
                        s.failed(), s.knee(), s.hold()) + " " + s.reason();
    }

    private static String showState(JsonObject s) {
        List<Long> numbers = Stream.of(
                        "limit", "reserve", "in_flight", "queued", "lent", "granted", "shed", "missed", "failed", "knee",
                        "hold_ns")
                .map(name -> number(s, name))
                .toList();
        return text(s, "class") + " " + numbers + " " + text(s, "reason");
    }

    private static List<JsonElement> list(JsonObject o, String name) {
        return o.has(name) ? o.getAsJsonArray(name).asList() : List.of();
    }

    private static String text(JsonObject o, String name) {
        return o.has(name) ? o.get(name).getAsString() : "";
    }

    private static boolean is(JsonObject o, String name) {
        return o.has(name) && o.get(name).getAsBoolean();
    }

    private static long number(JsonObject o, String name) {
        return o.has(name) ? o.get(name).getAsLong() : 0;
    }
}
