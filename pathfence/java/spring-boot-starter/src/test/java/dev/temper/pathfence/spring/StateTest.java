// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.spring;

import static org.junit.jupiter.api.Assertions.assertEquals;

import dev.temper.pathfence.ClassState;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.springframework.boot.json.JsonParser;
import org.springframework.boot.json.JsonParserFactory;
import org.springframework.http.MediaType;
import org.springframework.http.converter.HttpMessageConverter;
import org.springframework.mock.http.MockHttpOutputMessage;
import org.springframework.web.client.RestTemplate;

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
        JsonParser json = JsonParserFactory.getJsonParser();
        String agreed = Files.readString(Path.of("../../spec/state/state.json"));
        assertEquals(json.parseMap(agreed), json.parseMap(written(state)));
    }

    /** By the Jackson that this Spring has. */
    private static String written(Object value) throws IOException {
        for (HttpMessageConverter<?> by : new RestTemplate().getMessageConverters())
            if (by.canWrite(value.getClass(), MediaType.APPLICATION_JSON)) return written(by, value);
        throw new AssertionError("nobody writes JSON");
    }

    @SuppressWarnings("unchecked")
    private static <T> String written(HttpMessageConverter<T> by, Object value) throws IOException {
        MockHttpOutputMessage out = new MockHttpOutputMessage();
        by.write((T) value, MediaType.APPLICATION_JSON, out);
        return out.getBodyAsString();
    }
}
