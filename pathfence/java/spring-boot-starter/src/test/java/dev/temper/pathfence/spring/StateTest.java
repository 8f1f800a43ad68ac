// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.spring;

import static org.junit.jupiter.api.Assertions.assertEquals;

import dev.temper.pathfence.ClassState;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import tools.jackson.databind.json.JsonMapper;

/** What the endpoint says of a state is what is agreed, and what the C++ side says of it. */
class StateTest {
    @Test
    void saysWhatIsAgreed() throws Exception {
        FenceEndpoint.State state = new FenceEndpoint.State(
                false,
                16,
                12,
                3,
                "classes[1].limit: 0 is below 1",
                List.of(
                        new ClassState("orders", 10, 8, 10, 3, 2, 5210, 17, 2, 1, 9, 1_250_000, "knee", List.of("GET:/orders/:id", "POST:/orders")),
                        new ClassState("~un", 1, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, "", List.of())));
        JsonMapper json = JsonMapper.builder().build();
        String agreed = Files.readString(Path.of("../../spec/state/state.json"));
        assertEquals(json.readTree(agreed), json.readTree(json.writeValueAsString(state)));
    }
}
