// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * As much JSON as a configuration needs: numbers are 64-bit integers. Values are Map, List, String, Long, Boolean and
 * null.
 */
final class Json {
    private static final int DEEPEST = 32;

    private final String text;
    private int at;

    private Json(String text) {
        this.text = text;
    }

    static Object parse(String text) {
        Json j = new Json(text);
        Object v = j.value(0);
        j.blank();
        if (j.at != text.length()) throw j.error("something follows the value");
        return v;
    }

    private ConfigException error(String what) {
        return new ConfigException("JSON: " + what + ", at character " + (at + 1));
    }

    private void blank() {
        while (at < text.length() && " \n\t\r".indexOf(text.charAt(at)) >= 0) at++;
    }

    private char peek() {
        blank();
        if (at == text.length()) throw error("it ends too early");
        return text.charAt(at);
    }

    private boolean take(char c) {
        if (peek() != c) return false;
        at++;
        return true;
    }

    private void need(char c) {
        if (!take(c)) throw error("expected " + c);
    }

    private Object value(int depth) {
        if (depth > DEEPEST) throw error("it is nested too deeply");
        return switch (peek()) {
            case '{' -> object(depth);
            case '[' -> list(depth);
            case '"' -> string();
            case 't' -> word("true", true);
            case 'f' -> word("false", false);
            case 'n' -> word("null", null);
            default -> integer();
        };
    }

    private Object word(String word, Object value) {
        if (!text.startsWith(word, at)) throw error("an unknown word");
        at += word.length();
        return value;
    }

    private Map<String, Object> object(int depth) {
        Map<String, Object> out = new LinkedHashMap<>();
        need('{');
        if (take('}')) return out;
        do {
            if (peek() != '"') throw error("expected a name");
            String name = string();
            need(':');
            Object value = value(depth + 1);
            if (out.containsKey(name)) throw error("\"" + name + "\" is given twice");
            out.put(name, value);
        } while (take(','));
        need('}');
        return out;
    }

    private List<Object> list(int depth) {
        List<Object> out = new ArrayList<>();
        need('[');
        if (take(']')) return out;
        do out.add(value(depth + 1));
        while (take(','));
        need(']');
        return out;
    }

    private Long integer() {
        int from = at;
        while (at < text.length() && "+-.0123456789eE".indexOf(text.charAt(at)) >= 0) at++;
        String digits = text.substring(from, at);
        if (digits.startsWith("+")) throw error("expected a whole number");
        try {
            return Long.valueOf(digits);
        } catch (NumberFormatException e) {
            throw error("expected a whole number of 64 bits");
        }
    }

    private String string() {
        need('"');
        StringBuilder out = new StringBuilder();
        for (; ; ) {
            char c = inside();
            if (c == '"') return out.toString();
            out.append(c == '\\' ? escaped() : c);
        }
    }

    private char inside() {
        if (at == text.length()) throw error("a text without its end");
        return text.charAt(at++);
    }

    private char escaped() {
        char c = inside();
        return switch (c) {
            case 'n' -> '\n';
            case 't' -> '\t';
            case 'r' -> '\r';
            case 'b' -> '\b';
            case 'f' -> '\f';
            case '"', '\\', '/' -> c;
            case 'u' -> unicode();
            default -> throw error("an unknown escape");
        };
    }

    private char unicode() {
        int u = 0;
        for (int i = 0; i < 4; i++) {
            int digit = Character.digit(inside(), 16);
            if (digit < 0) throw error("expected four hexadecimal digits");
            u = u * 16 + digit;
        }
        return (char) u;
    }
}
