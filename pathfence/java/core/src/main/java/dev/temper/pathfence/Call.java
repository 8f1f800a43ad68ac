// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence;

/**
 * What is known of a request when it comes.
 *
 * @param key names its path; null or one that is not valid counts as unknown
 * @param timeout nanoseconds that are left until its deadline, 0 or more; 0: the class's target; above 600 s counts as
 *     600 s
 * @param depth how often its chain of calls has been in this service before, 0 or more
 * @param shortens whether the timeout may only shorten the class's target, as that of a peer that is not trusted
 */
public record Call(String key, long timeout, long depth, boolean shortens) {
    private static final long LONGEST = 600_000_000_000L;

    /**
     * Checks the bounds.
     *
     * @throws IllegalArgumentException for a timeout or depth below 0
     */
    public Call {
        if (timeout < 0) throw new IllegalArgumentException("timeout is " + timeout + "; it must be 0 or more");
        if (depth < 0) throw new IllegalArgumentException("depth is " + depth + "; it must be 0 or more");
        timeout = Math.min(timeout, LONGEST);
    }

    /**
     * A request whose timeout counts as it is.
     *
     * @param key names its path
     * @param timeout nanoseconds that are left
     * @param depth how often its chain of calls has been in this service before
     */
    public Call(String key, long timeout, long depth) {
        this(key, timeout, depth, false);
    }

    /**
     * The same request with another depth.
     *
     * @param other how often its chain of calls has been in this service before
     * @return the call
     */
    public Call at(long other) {
        return new Call(key, timeout, other, shortens);
    }

    /**
     * A request with its class's target that comes for the first time.
     *
     * @param key names its path
     * @return the call
     */
    public static Call of(String key) {
        return new Call(key, 0, 0);
    }
}
