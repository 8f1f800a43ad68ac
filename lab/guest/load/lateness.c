/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lateness WAKES CPU: sleeps WAKES times on a CPU, each time until a moment about a millisecond away, and prints how late
 * it ran.
 */
#include "late.h"

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
	print_times(late, wakes);
}
