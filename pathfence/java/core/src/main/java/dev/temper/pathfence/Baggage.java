// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence;

import java.util.HashMap;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;

/** A request's context in a W3C baggage header. */
final class Baggage {
    private static final int MOST_BYTES = 8192;
    private static final int MOST_MEMBERS = 64;

    private Baggage() {}

    /**
     * Reads the members {@code pf.path}, {@code pf.deadline} and {@code pf.visits}.
     *
     * @param header the header's value; above 8192 bytes or 64 members nothing of it counts
     * @return what of it is valid
     */
    static PathContext read(String header) {
        if (header.length() > MOST_BYTES) return PathContext.NONE;
        String[] members = header.split(",", -1);
        if (members.length > MOST_MEMBERS) return PathContext.NONE;
        Map<String, String> found = new HashMap<>();
        for (String member : members) {
            int equals = member.indexOf('=');
            if (equals < 0) continue;
            String name = trimmed(member.substring(0, equals));
            if (!name.startsWith("pf.")) continue;
            int properties = member.indexOf(';', equals);
            String value = member.substring(equals + 1, properties < 0 ? member.length() : properties);
            found.putIfAbsent(name, decoded(trimmed(value)));
        }
        return PathContext.read(found);
    }

    /**
     * Writes members to append to a header.
     *
     * @param context what they carry
     * @return the members, joined by commas; may be empty
     */
    static String write(PathContext context) {
        Map<String, String> values = new TreeMap<>();
        context.write(values);
        return values.entrySet().stream()
                .map(e -> e.getKey() + "=" + e.getValue().replace("%", "%25").replace(";", "%3B"))
                .collect(Collectors.joining(","));
    }

    private static String trimmed(String s) {
        int from = 0;
        int to = s.length();
        while (from < to && blank(s.charAt(from))) from++;
        while (to > from && blank(s.charAt(to - 1))) to--;
        return s.substring(from, to);
    }

    private static boolean blank(char c) {
        return c == ' ' || c == '\t';
    }

    private static String decoded(String s) {
        StringBuilder out = new StringBuilder();
        for (int i = 0; i < s.length(); i++) {
            boolean escape = s.charAt(i) == '%'
                    && i + 2 < s.length()
                    && digit(s.charAt(i + 1)) >= 0
                    && digit(s.charAt(i + 2)) >= 0;
            if (!escape) {
                out.append(s.charAt(i));
                continue;
            }
            out.append((char) (digit(s.charAt(i + 1)) * 16 + digit(s.charAt(i + 2))));
            i += 2;
        }
        return out.toString();
    }

    /** Of a hexadecimal digit in ASCII, or -1: other scripts have digits, too. */
    private static int digit(char c) {
        return c < 128 ? Character.digit(c, 16) : -1;
    }
}
