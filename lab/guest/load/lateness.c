/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lateness WAKES CPU: sleeps WAKES times on a CPU, each time until a moment about a millisecond away, and prints how late
 * it ran: the median, the 99th and 99.9th percentiles and the longest, in ns.
 */
#include "load.h"

static int ascending(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	int wakes = argc == 3 ? atoi(argv[1]) : 0;
	uint64_t *late = calloc(wakes + 1, sizeof(*late));

	errno = EINVAL;
	if (wakes < 1 || !late)
		die("usage: lateness WAKES CPU");
	pin(atoi(argv[2]), atoi(argv[2]));
	for (int i = 0; i < wakes; i++) {
		uint64_t until = now_ns() + NSEC / 1000 * (0.5 + drand48()); /* in step with no tick */

		sleep_until(until);
		late[i] = now_ns() - until;
	}
	qsort(late, wakes, sizeof(*late), ascending);
	printf("%lu %lu %lu %lu\n", late[wakes / 2], late[wakes - 1 - wakes / 100], late[wakes - 1 - wakes / 1000], late[wakes - 1]);
}
