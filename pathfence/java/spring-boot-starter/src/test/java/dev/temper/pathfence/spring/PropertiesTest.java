// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.spring;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.reflect.RecordComponent;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.json.JsonParserFactory;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.context.ApplicationContextInitializer;
import org.springframework.core.io.support.SpringFactoriesLoader;

/** What a user is told of properties: by the IDE, by an error, by a warning. */
@Timeout(180)
@ExtendWith(OutputCaptureExtension.class)
class PropertiesTest extends InServer {
    @Test
    void everyPropertyIsDescribedForTheIDE() throws Exception {
        String metadata;
        try (var in = PathfenceProperties.class.getResourceAsStream("/META-INF/spring-configuration-metadata.json")) {
            metadata = new String(in.readAllBytes(), StandardCharsets.UTF_8);
        }
        List<String> wanted = new ArrayList<>(names("pathfence.", PathfenceProperties.class));
        wanted.removeAll(List.of("pathfence.off-in-yaml", "pathfence.outgoing"));
        wanted.addAll(names("pathfence.outgoing.", PathfenceProperties.Outgoing.class));
        List<String> described = new ArrayList<>();
        for (Object o : (List<?>) JsonParserFactory.getJsonParser().parseMap(metadata).get("properties")) {
            Map<?, ?> p = (Map<?, ?>) o;
            if (p.get("description") instanceof String about && about.length() > 10) described.add((String) p.get("name"));
        }
        wanted.removeAll(described);
        assertEquals(List.of(), wanted, "properties without a description");
    }

    private static List<String> names(String prefix, Class<?> properties) {
        return Stream.of(properties.getRecordComponents())
                .map(RecordComponent::getName)
                .map(name -> prefix + name.replaceAll("([A-Z])", "-$1").toLowerCase(Locale.ROOT))
                .toList();
    }

    @ParameterizedTest
    @ValueSource(strings = {"pathfence.wokers", "pathfence.classes[0].kyes[0]", "pathfence.outgoing.jbdc"})
    void aNameThatIsNoneIsAnError(String name, CapturedOutput output) {
        assertThrows(RuntimeException.class, () -> start("tomcat", "pathfence.classes[0].name=own", name + "=7"));
        assertTrue(output.getAll().contains("[" + name + "]"), output.getAll());
    }

    /** YAML reads off as false where it is a key, too. */
    @ParameterizedTest
    @ValueSource(strings = {"off: true", "off: true, workers: 3", "\"off\": true", "off: yes, target: 3s"})
    void offInYamlIsOff(String yaml, @TempDir Path folder) throws Exception {
        Path file = Files.writeString(folder.resolve("off.yaml"), "pathfence: {" + yaml + "}");
        start("tomcat", "spring.config.additional-location=" + file.toUri());
        assertTrue(fence.config().off(), yaml);
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', value = {
        "pathfence.classes[0].keys[0]=GET:/orders/{id} | class own: key \"GET:/orders/{id}\" is no name",
        "pathfence.classes[0].weight=5000 | class own: weight is 5000",
        "pathfence.config=no/such/file.json | no/such/file.json",
        "test.wrong-key=true | @PathKey(\"no key\") of"
    })
    void whatIsWrongIsSaidInTwoLines(String property, String says, CapturedOutput output) {
        assertThrows(RuntimeException.class, () -> start("tomcat", "pathfence.classes[0].name=own", property));
        String said = output.getAll();
        assertTrue(said.contains("PathFence's configuration is wrong: ") && said.contains(says), said);
        assertFalse(said.contains("\tat "), "a stack trace: " + said);
    }

    @ParameterizedTest
    @CsvSource({"0, true, true", "0, false, false", "7, true, false"})
    void workersThatNobodyHasSaidAreToldBesideVirtualThreads(int workers, boolean virtual, boolean told, CapturedOutput output) {
        start("tomcat", "pathfence.workers=" + workers, "spring.threads.virtual.enabled=" + virtual, "logging.level.root=WARN");
        assertEquals(told, output.getAll().contains("PathFence serves 6 requests at once"), output.getAll());
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', value = {
        "2.7.18 | none | PathFence has one from 3.5 on; take this one out",
        "3.4.13 | none | PathFence has one from 3.5 on; take this one out",
        "3.5.6 | temper-pathfence-spring-boot-3-starter | take temper-pathfence-spring-boot-3-starter instead",
        "4.0.0 | temper-pathfence-spring-boot-starter | take temper-pathfence-spring-boot-starter instead",
        "4.1.0-SNAPSHOT | temper-pathfence-spring-boot-starter | take temper-pathfence-spring-boot-starter instead",
        "10.0 | temper-pathfence-spring-boot-starter | take temper-pathfence-spring-boot-starter instead"
    })
    void anotherSpringBootIsAnError(String version, String starter, String cure) {
        if (starter.equals(Boot.STARTER)) {
            NeedsSpringBoot.check(version);
            return;
        }
        String why = assertThrows(IllegalStateException.class, () -> NeedsSpringBoot.check(version)).getMessage();
        assertTrue(why.contains(Boot.STARTER + " is not for Spring Boot " + version + ": " + cure + ","), why);
    }

    /** Spring runs it, whatever else is there. */
    @Test
    void theVersionIsLookedAt() {
        assertTrue(SpringFactoriesLoader.forDefaultResourceLocation().load(ApplicationContextInitializer.class).stream()
                .anyMatch(NeedsSpringBoot.class::isInstance));
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', value = {
        "pathfence.target=10 | PathFence: 4 requests at once on 8 threads, target 10 ms, all classes are learned",
        "pathfence.classes[0].name=own | PathFence: 4 requests at once on 8 threads, target 60000 ms, classes own",
        "pathfence.off=true | PathFence, switched off: 4 requests at once on 8 threads"
    })
    void theLogSaysWhatIsInForce(String property, String says, CapturedOutput output) {
        start("tomcat", property, "logging.level.root=INFO");
        assertTrue(output.getAll().contains(says), output.getAll());
    }

    @ParameterizedTest
    @CsvSource({"7, false, false", "8, false, true", "8, true, false"})
    void moreWorkersThanThreadsAreTold(int workers, boolean virtual, boolean told, CapturedOutput output) {
        start("tomcat", "pathfence.workers=" + workers, "spring.threads.virtual.enabled=" + virtual, "logging.level.root=WARN");
        assertEquals(told, output.getAll().contains("PathFence has 8 workers, and the server 8 threads"), output.getAll());
        assertFalse(told && !output.getAll().contains("Set pathfence.workers to 6"), output.getAll());
    }
}
