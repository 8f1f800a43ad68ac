// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence;

/** A configuration that is not valid. The message says which value, and what it must be. */
public final class ConfigException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    /**
     * Says what is wrong.
     *
     * @param message which value, and what it must be
     */
    public ConfigException(String message) {
        super(message);
    }

    /**
     * Says what is wrong, and what it follows from.
     *
     * @param message which value, and what it must be
     * @param cause what it follows from
     */
    public ConfigException(String message, Throwable cause) {
        super(message, cause);
    }
}
