// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.thrift;

import static org.junit.jupiter.api.Assertions.assertEquals;

import dev.temper.pathfence.PathContext;
import org.junit.jupiter.api.Test;

/** What travels in front of a method's name: ../../spec/wire.md. */
class ThriftNameTest {
    private static final PathContext FULL = new PathContext("home.read", 240_000_000, "front*1;shared*2");

    @Test
    void aNameCarriesAll() {
        assertEquals("pf!home.read!240!front*1;shared*2!getPost", ThriftName.join(FULL, "getPost"));
        assertEquals(new ThriftName("getPost", FULL), ThriftName.split(ThriftName.join(FULL, "getPost")));
        String multiplexed = "posts:" + ThriftName.join(FULL, "getPost");
        assertEquals(new ThriftName("posts:getPost", FULL), ThriftName.split(multiplexed));
        assertEquals(new ThriftName("posts:getPost", PathContext.NONE), ThriftName.split("posts:getPost"));
        assertEquals("pf!!!!getPost", ThriftName.join(PathContext.NONE, "getPost"));
    }

    @Test
    void whatIsNoPrefixStays() {
        assertEquals(new ThriftName("pf!a!1!getPost", PathContext.NONE), ThriftName.split("pf!a!1!getPost"));
    }
}
