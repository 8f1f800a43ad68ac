// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.bench;

import java.util.concurrent.TimeUnit;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;

/** The catalogue, the cart or the orders: works by sleeping. What it calls has a tenth of the work, and is not slow. */
@RestController
final class ShopBack {
    private static final int SHARE = 10;

    private final ShopOptions options;
    private final ShopClient client;
    private volatile long slow = 1;

    ShopBack(ShopOptions options, ShopClient client) {
        this.options = options;
        this.client = client;
    }

    /** What starts from now on takes so many times as long. */
    void slow(long times) {
        slow = times;
    }

    @PostMapping("/{service}")
    void work(@PathVariable("service") String service, @RequestParam("work_us") long workMicros)
            throws InterruptedException {
        if (!service.equals(options.service())) throw new IllegalArgumentException("this is not " + service);
        TimeUnit.MICROSECONDS.sleep(workMicros * slow);
        for (String below : options.downstreams()) client.call(below, workMicros / SHARE);
    }
}
