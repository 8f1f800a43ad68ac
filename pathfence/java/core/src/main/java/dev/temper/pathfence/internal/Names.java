// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.internal;

/** Keys, classes, edges and services: what a name may be. */
public final class Names {
    /** Bytes of the longest name. */
    public static final int LONGEST = 64;

    private static final String ALLOWED =
            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/:+-~";
    private static final boolean[] IS_ALLOWED = new boolean[128];

    static {
        ALLOWED.chars().forEach(c -> IS_ALLOWED[c] = true);
    }

    private Names() {}

    /**
     * Whether a name is 1 to 64 bytes of {@code a-z A-Z 0-9 . _ / : + - ~}.
     *
     * @param name the name, or null
     * @return false also for null
     */
    public static boolean valid(String name) {
        if (name == null || name.isEmpty() || name.length() > LONGEST) return false;
        for (int i = 0; i < name.length(); i++) {
            char c = name.charAt(i);
            if (c >= IS_ALLOWED.length || !IS_ALLOWED[c]) return false;
        }
        return true;
    }
}
