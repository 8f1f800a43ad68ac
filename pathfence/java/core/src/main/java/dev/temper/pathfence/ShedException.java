// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence;

/**
 * The request was refused: {@code expired}, {@code late}, {@code full}, {@code depth}, or {@code closed}. A retry helps
 * nobody. It has no stack trace: under overload there are many, and where it comes from says nothing.
 */
public final class ShedException extends Exception {
    private static final long serialVersionUID = 1L;

    private final String reason;

    /**
     * A refusal.
     *
     * @param reason why
     */
    public ShedException(String reason) {
        super("pf-shed: " + reason, null, false, false);
        this.reason = reason;
    }

    /**
     * Why the request was refused.
     *
     * @return one of the reasons above
     */
    public String reason() {
        return reason;
    }
}
