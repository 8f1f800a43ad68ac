// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.bench;

import java.util.Set;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;

/** The shop's front end: plain synchronous code, with or without a fence. */
@RestController
final class ShopFront {
    /** The benchmark's paths, as what is asked for names them. */
    static final Set<String> PATHS = Set.of("browse", "cart", "checkout");

    private final ShopClient client;

    ShopFront(ShopClient client) {
        this.client = client;
    }

    @PostMapping("/browse")
    void browse(@RequestParam("work_us") long workMicros) {
        client.call("catalogue", workMicros);
    }

    @PostMapping("/cart")
    void cart(@RequestParam("work_us") long workMicros) {
        client.call("cart", workMicros);
    }

    @PostMapping("/checkout")
    void checkout(@RequestParam("work_us") long workMicros) {
        client.call("orders", workMicros);
    }
}
