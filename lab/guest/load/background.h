/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Best-effort work without an end, on CPUs 0..CPUS-1, counted in units of fixed size in the work
 * file's slot SLOT. A worker says "\n" once its first unit is done.
 */
#ifndef TEMPER_BACKGROUND_H
#define TEMPER_BACKGROUND_H

#include "load.h"

static inline void work(int argc, char **argv, void (*unit)(void))
{
	if (argc != 3) {
		errno = EINVAL;
		die("usage: %s SLOT CPUS", argv[0]);
	}
	volatile uint64_t *units = &map_work()[atoi(argv[1]) % MAX_SPINNERS].units;

	pin(0, atoi(argv[2]) - 1);
	adopt_policy();
	unit();
	if (write(STDOUT_FILENO, "\n", 1) != 1)
		die("stdout");
	for (;;) {
		unit();
		++*units;
	}
}

#endif
