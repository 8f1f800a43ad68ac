// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence;

/**
 * What the core is told of a request when it comes.
 *
 * @param id tells it from all others that wait or are in flight; not 0
 * @param key names its path; one that is not valid counts as unknown
 * @param deadline nanoseconds on the core's clock; 0: the class's target from now on
 * @param shortens whether the deadline may only shorten the target, as that of a peer that is not trusted
 * @param depth how often its chain of calls has been in this service before; below 0 counts as 0
 * @param parent the request in flight that it is a part of; 0: none
 */
record Arrival(long id, String key, long deadline, boolean shortens, long depth, long parent) {}
