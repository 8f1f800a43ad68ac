// SPDX-License-Identifier: Apache-2.0
package example;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;

/** Two paths on one pool: items, and orders, which need a warehouse. The fence needs nothing in the code. */
@SpringBootApplication
@RestController
public class Shop {
    private volatile long warehouseTakes = 20;

    public static void main(String[] arguments) {
        SpringApplication.run(Shop.class, arguments);
    }

    @GetMapping("/items/{id}")
    public String item(@PathVariable("id") String id) {
        return "item " + id;
    }

    @GetMapping("/orders/{id}")
    public String order(@PathVariable("id") String id) throws InterruptedException {
        Thread.sleep(warehouseTakes); // stands for a call to another service
        return "order " + id;
    }

    /**
     * Makes the warehouse slow, or quick again.
     *
     * @param takes how long it takes from now on, in milliseconds
     */
    @PostMapping("/warehouse")
    public void warehouse(@RequestParam("takes") long takes) {
        warehouseTakes = takes;
    }
}
