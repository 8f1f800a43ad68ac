// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.spring;

import org.springframework.boot.SpringBootVersion;
import org.springframework.context.ApplicationContextInitializer;
import org.springframework.context.ConfigurableApplicationContext;

/** Says which Spring Boot there must be, before classes are missed that others do not have. */
public final class NeedsSpringBoot4 implements ApplicationContextInitializer<ConfigurableApplicationContext> {
    /** For Spring. */
    public NeedsSpringBoot4() {}

    @Override
    public void initialize(ConfigurableApplicationContext context) {
        if (context.getEnvironment().getProperty("pathfence.enabled", Boolean.class, true))
            check(SpringBootVersion.getVersion());
    }

    static void check(String version) {
        int major = Integer.parseInt(version.substring(0, version.indexOf('.')));
        if (major < 4)
            throw new IllegalStateException("temper-pathfence-spring-boot-starter needs Spring Boot 4, and this is "
                    + version + ": take the starter out, or set pathfence.enabled to false");
    }
}
