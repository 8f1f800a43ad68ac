// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence;

/** Keys, classes, edges and services: what a name may be. */
public final class Names {
    private static final int LONGEST = 64;
    private static final String SIGNS = "._/:+-~";

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
            boolean letter = c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z';
            boolean digit = c >= '0' && c <= '9';
            if (!letter && !digit && SIGNS.indexOf(c) < 0) return false;
        }
        return true;
    }
}
