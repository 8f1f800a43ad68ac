// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence;

/**
 * What the core decided.
 *
 * @param kind what it is
 * @param id the request, for {@link Kind#GRANT} and {@link Kind#SHED}; else 0
 * @param className the class that it concerns; {@code ~edge:} and an edge for the limit of classes that are late together
 * @param lent a grant beyond the class's reserve
 * @param reason why; empty for an ordinary grant
 * @param limit the new limit, for {@link Kind#LIMIT}; else 0
 */
record Decision(Kind kind, long id, String className, boolean lent, String reason, long limit) {
    /** The kinds of decisions. */
    enum Kind {
        /** The request has a worker. */
        GRANT,
        /** The request is refused. */
        SHED,
        /** The limit changed. */
        LIMIT,
        /** The class may not borrow for a while. */
        STOP
    }
}
