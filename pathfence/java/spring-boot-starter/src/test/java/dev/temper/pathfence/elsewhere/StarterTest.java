// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.elsewhere;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.temper.pathfence.ClassState;
import dev.temper.pathfence.Fence;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

/** A user's application is in another package: Spring finds of the starter what its files in META-INF name, and no more. */
@Timeout(180)
class StarterTest {
    @SpringBootApplication
    @RestController
    static class Application {
        @GetMapping("/fast")
        String fast() {
            return "fast";
        }
    }

    @Test
    void allOfItIsFound() throws Exception {
        try (ConfigurableApplicationContext context =
                SpringApplication.run(Application.class, "--server.port=0", "--logging.level.root=ERROR")) {
            for (String bean : List.of("pathfenceTomcat", "pathfenceJetty", "pathfenceRestClient", "pathfenceWebClient"))
                assertTrue(context.containsBean(bean), bean);
            URI uri = URI.create("http://127.0.0.1:" + context.getEnvironment().getProperty("local.server.port") + "/fast");
            var answer = HttpClient.newHttpClient().send(HttpRequest.newBuilder(uri).build(), HttpResponse.BodyHandlers.ofString());
            assertEquals("fast", answer.body());
            Fence fence = context.getBean(Fence.class);
            assertEquals(1, fence.states().stream().mapToLong(ClassState::granted).sum());
        }
    }
}
