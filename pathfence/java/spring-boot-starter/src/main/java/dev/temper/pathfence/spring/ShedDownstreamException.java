// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.spring;

/**
 * A downstream refused the call and says that a retry helps nobody. Where it leaves a handler, the request is refused as
 * the downstream's call was.
 */
public final class ShedDownstreamException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private final String reason;

    /**
     * A refusal.
     *
     * @param edge who refused
     * @param reason why
     */
    public ShedDownstreamException(String edge, String reason) {
        super(edge + " refused the call: pf-shed: " + reason);
        this.reason = reason;
    }

    /**
     * Why it was refused.
     *
     * @return as in {@code x-pf-shed}
     */
    public String reason() {
        return reason;
    }
}
