// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence;

import java.util.List;

/**
 * What metrics show of a class.
 *
 * @param name the configured name, {@code ~calls:...} or {@code ~key:...} of a learned class, {@code ~un} of a bucket for unknown keys
 * @param limit the most that it may have in flight, alone or together with others that use the same edge: what is less
 * @param reserve the workers that it has a right to
 * @param inFlight the workers that it has
 * @param queued the requests that wait
 * @param lent workers that it has beyond its reserve
 * @param granted requests that were given a worker, since the start
 * @param shed requests that were refused, since the start
 * @param missed requests that ended well, but after their deadline, or whose client left after it, since the start
 * @param failed requests that failed, since the start
 * @param knee the smallest concurrency on the plateau of goodput by the last fit; 0 before the first
 * @param hold nanoseconds that a request usually keeps its worker; 0 while that is not known
 * @param reason why the limit changed last, empty before it did; {@code together} where it is that of several classes
 * @param keys the paths that are known to be of it: configured, learned, or, of a bucket, being learned; the first 16 by
 *     name
 */
public record ClassState(
        String name,
        long limit,
        long reserve,
        long inFlight,
        long queued,
        long lent,
        long granted,
        long shed,
        long missed,
        long failed,
        long knee,
        long hold,
        String reason,
        List<String> keys) {}
