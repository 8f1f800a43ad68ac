/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What those do who make trouble for a scheduler (churn.c, reach.c).
 */
#ifndef TROUBLE_H
#define TROUBLE_H

#include <signal.h>
#include <sys/prctl.h>

#include "load.h"

#define SHORT 500 /* iterations of compute(), some 10 us in the lab */

static void check(bool good, const char *what)
{
	if (!good)
		die("%s", what);
}

static void yield(void)
{
	compute(SHORT);
	sched_yield();
}

/* Two tasks that wake each other, and sleep at once. */
static void ping(void)
{
	static int to[2], from[2];
	char byte = 0;

	if (!to[1]) {
		check(!pipe(to) && !pipe(from), "pipe");
		pid_t child = fork();

		check(child >= 0, "fork");
		if (child == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			close(to[1]);
			while (read(to[0], &byte, 1) == 1 && write(from[1], &byte, 1) == 1)
				compute(SHORT);
			exit(0);
		}
	}
	compute(SHORT);
	check(write(to[1], &byte, 1) == 1 && read(from[0], &byte, 1) == 1, "pipe to the child");
}

#endif
