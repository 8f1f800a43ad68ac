// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.spring;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.net.URI;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class PeersTest {
    @ParameterizedTest
    @CsvSource({
        "orders.shop.svc, http://orders.shop.svc/a, true",
        "orders.shop.svc, http://ORDERS.shop.svc:8080/a, true",
        "Orders.Shop.Svc, http://orders.shop.svc, true",
        "orders.shop.svc:8080, http://orders.shop.svc:8080/a, true",
        "orders.shop.svc:8080, http://orders.shop.svc/a, false",
        "*.shop.svc, http://orders.shop.svc:8080, true",
        "*.shop.svc, http://shop.svc, false",
        "*.shop.svc, http://workshop.svc, false",
        "*.shop.svc, http://orders.shop.svc.evil.example, false",
        "orders.shop.svc, http://orders.shop.svc@evil.example/, false",
        "orders.shop.svc, /orders.shop.svc, false"
    })
    void oneIsHadByItsName(String name, URI uri, boolean peer) {
        assertEquals(peer, new Peers(List.of(name)).have(uri));
    }

    @ParameterizedTest
    @CsvSource({
        "http://localhost:8080, true", "http://127.0.0.1, true", "http://127.1.2.3:80, true", "http://[::1]:80, true",
        "http://127.0.0.1.example, false", "http://10.0.0.1, false", "/path, false"
    })
    void thisProcessIsAtALoopbackAddress(URI uri, boolean loopback) {
        assertEquals(loopback, Peers.isLoopback(uri));
    }

    @Test
    void nobodyIsAPeerUnlessNamed() {
        assertEquals(false, new Peers(List.of()).have(URI.create("http://localhost")));
    }
}
