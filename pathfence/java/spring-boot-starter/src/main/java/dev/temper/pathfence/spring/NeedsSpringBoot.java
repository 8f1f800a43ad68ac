// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.spring;

import org.springframework.boot.SpringBootVersion;
import org.springframework.context.ApplicationContextInitializer;
import org.springframework.context.ConfigurableApplicationContext;

/** Says which starter a Spring Boot takes, before classes are missed that it does not have. */
public final class NeedsSpringBoot implements ApplicationContextInitializer<ConfigurableApplicationContext> {
    /** For Spring. */
    public NeedsSpringBoot() {}

    @Override
    public void initialize(ConfigurableApplicationContext context) {
        if (context.getEnvironment().getProperty("pathfence.enabled", Boolean.class, true))
            check(SpringBootVersion.getVersion());
    }

    static void check(String version) {
        String starter = starterFor(version);
        if (starter.equals(Boot.STARTER)) return;
        String cure = starter.isEmpty() ? "PathFence has one from 3.5 on; take this one out" : "take " + starter + " instead";
        throw new IllegalStateException(
                Boot.STARTER + " is not for Spring Boot " + version + ": " + cure + ", or set pathfence.enabled to false");
    }

    private static String starterFor(String version) {
        String[] parts = version.split("[.-]");
        int major = Integer.parseInt(parts[0]);
        if (major >= 4) return "temper-pathfence-spring-boot-starter";
        return major == 3 && Integer.parseInt(parts[1]) >= 5 ? "temper-pathfence-spring-boot-3-starter" : "";
    }
}
