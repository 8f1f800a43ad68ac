// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.spring;

import dev.temper.pathfence.Permit;
import dev.temper.pathfence.Serving;
import java.nio.ByteBuffer;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.security.SecureRandom;
import java.util.Arrays;
import java.util.Base64;
import java.util.function.BiConsumer;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/**
 * Calls of this process to itself. Whoever makes one holds a worker until it is answered, so it runs as a part of the
 * request that makes it. A call names that request; the name is signed, so that nobody else can make one up, and means
 * nothing once the request is over.
 */
final class Within {
    /** The header with the name. */
    static final String HEADER = "x-pf-within";

    private static final String ALGORITHM = "HmacSHA256";
    private static final int SIGNATURE = 32;
    private static final int NAME = 2 * Long.BYTES;

    private final SecretKeySpec secret;

    /**
     * Who calls.
     *
     * @param permit its permit; 0: nobody of this process
     * @param depth how many requests of this process wait for the call, its caller included
     */
    record Caller(long permit, long depth) {
        static final Caller NOBODY = new Caller(0, 0);
    }

    Within() {
        byte[] bytes = new byte[SIGNATURE];
        new SecureRandom().nextBytes(bytes);
        secret = new SecretKeySpec(bytes, ALGORITHM);
    }

    /** Names the request that this thread serves, if it does, for a call that it makes. */
    void write(BiConsumer<String, String> header) {
        Serving.here().ifPresent(s -> header.accept(HEADER, name(s.permit())));
    }

    private String name(Permit of) {
        byte[] named = ByteBuffer.allocate(NAME).putLong(of.id()).putLong(of.depth()).array();
        byte[] all = Arrays.copyOf(named, NAME + SIGNATURE);
        System.arraycopy(signature(named), 0, all, NAME, SIGNATURE);
        return Base64.getUrlEncoder().withoutPadding().encodeToString(all);
    }

    /** Who has made a call, by what the header says. */
    Caller caller(String said) {
        if (said == null) return Caller.NOBODY;
        byte[] all;
        try {
            all = Base64.getUrlDecoder().decode(said);
        } catch (IllegalArgumentException e) {
            return Caller.NOBODY;
        }
        if (all.length != NAME + SIGNATURE) return Caller.NOBODY;
        byte[] named = Arrays.copyOf(all, NAME);
        boolean ours = MessageDigest.isEqual(signature(named), Arrays.copyOfRange(all, NAME, all.length));
        if (!ours) return Caller.NOBODY;
        ByteBuffer read = ByteBuffer.wrap(named);
        return new Caller(read.getLong(), read.getLong() + 1);
    }

    private byte[] signature(byte[] named) {
        try {
            Mac mac = Mac.getInstance(ALGORITHM);
            mac.init(secret);
            return mac.doFinal(named);
        } catch (GeneralSecurityException e) {
            throw new IllegalStateException("every Java has " + ALGORITHM, e);
        }
    }
}
