// SPDX-License-Identifier: Apache-2.0
package example;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.RestController;

/** Two paths on one pool: when orders get slow, the catalogue does not. The fence needs nothing in the code. */
@SpringBootApplication
@RestController
public class Shop {
    public static void main(String[] arguments) {
        SpringApplication.run(Shop.class, arguments);
    }

    @GetMapping("/items/{id}")
    public String item(@PathVariable("id") String id) {
        return "item " + id;
    }

    @GetMapping("/orders/{id}")
    public String order(@PathVariable("id") String id) throws InterruptedException {
        Thread.sleep(500); // the slow downstream
        return "order " + id;
    }
}
