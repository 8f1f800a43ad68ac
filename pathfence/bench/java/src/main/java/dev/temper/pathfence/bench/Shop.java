// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.bench;

import dev.temper.pathfence.Config;
import dev.temper.pathfence.Fence;
import java.util.HashMap;
import java.util.Map;
import java.util.Scanner;
import java.util.logging.Level;
import java.util.logging.LogManager;
import org.springframework.boot.Banner;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.SpringBootConfiguration;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.support.GenericApplicationContext;
import org.springframework.core.env.MapPropertySource;

/**
 * A service of a shop in Spring Boot, on Tomcat: the front end, which paths share, or one that it calls. It says on
 * standard output which port it listens on, and serves until its standard input ends.
 *
 * <pre>front|catalogue|cart|orders --workers N  [--downstream SERVICE ...]  [--fence JSON | --admission NAME]</pre>
 *
 * <p>All can start at the same time: a line "downstream SERVICE PORT" on standard input says where one is that this calls.
 * A line "slow N" makes what starts from then on take N times as long.
 */
public final class Shop {
    private Shop() {}

    /** What all of its services are configured with. */
    @SpringBootConfiguration
    @EnableAutoConfiguration
    static class Common {}

    /**
     * Serves.
     *
     * @param arguments see above
     */
    public static void main(String[] arguments) {
        // What fails at the start is thrown; that a client gave up is no news here.
        System.setProperty("org.springframework.boot.logging.LoggingSystem", "none");
        LogManager.getLogManager().getLogger("").setLevel(Level.OFF);
        ShopOptions options = ShopOptions.parse(arguments);
        ConfigurableApplicationContext context = start(options);
        System.out.println("listening service=" + port(context));
        Scanner commands = new Scanner(System.in);
        while (commands.hasNextLine()) obey(context, commands.nextLine());
        Runtime.getRuntime().halt(0); // its threads serve to the end
    }

    static ConfigurableApplicationContext start(ShopOptions options) {
        SpringApplication application =
                new SpringApplication(Common.class, options.isFront() ? ShopFront.class : ShopBack.class);
        application.setBannerMode(Banner.Mode.OFF); // who starts this reads its standard output
        application.addInitializers(context -> {
            // The environment and arguments of whoever starts this are not asked.
            context.getEnvironment().getPropertySources().addFirst(new MapPropertySource("shop", properties(options)));
            register((GenericApplicationContext) context, options);
        });
        return application.run();
    }

    static int port(ConfigurableApplicationContext context) {
        return context.getEnvironment().getRequiredProperty("local.server.port", Integer.class);
    }

    static void obey(ConfigurableApplicationContext context, String command) {
        String[] words = command.split(" ");
        switch (words[0]) {
            case "downstream" -> context.getBean(ShopClient.class).locate(words[1], Integer.parseInt(words[2]));
            case "slow" -> context.getBean(ShopBack.class).slow(Long.parseLong(words[1]));
            default -> throw new IllegalArgumentException("there is no command " + command);
        }
    }

    private static Map<String, Object> properties(ShopOptions options) {
        Map<String, Object> p = new HashMap<>();
        p.put("server.address", "127.0.0.1");
        p.put("server.port", 0);
        p.put("server.shutdown", "immediate");
        p.put("server.tomcat.threads.max", options.threads());
        p.put("server.tomcat.threads.min-spare", options.threads());
        p.put("server.tomcat.max-keep-alive-requests", -1); // the cost of connections is none of an arm's
        p.put("pathfence.enabled", !options.fence().isEmpty());
        for (String path : ShopFront.PATHS) p.put("pathfence.routes[/" + path + "]", path);
        return p;
    }

    private static void register(GenericApplicationContext context, ShopOptions options) {
        context.registerBean(ShopOptions.class, () -> options);
        context.registerBean(ShopClient.class);
        // In place of the starter's own, whose properties do not know the parts that benchmarks switch off.
        if (!options.fence().isEmpty())
            context.registerBean(Fence.class, () -> Fence.of(Config.parse(options.fence())));
        if (!options.admission().isEmpty()) context.registerBean(AdmissionFilter.class);
    }
}
