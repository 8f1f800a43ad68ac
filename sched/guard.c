// SPDX-License-Identifier: GPL-2.0
/*
 * A guard against a detach that starves.
 *
 * Problem: while a kernel without a server for sched_ext tasks (6.12 to 6.19) detaches a
 * scheduler, a task that is forked, or that sets its policy, is the stock scheduler's at once, and
 * comes before all that have not been moved yet. If such tasks spin on every CPU, RCU's thread never
 * runs, and the kernel waits for a grace period before it moves anybody: the node hangs for good.
 * No privilege is needed to do that.
 *
 * Method: a real-time thread looks at the kernel's state. If that is "disabling" twice in a row, it
 * gives each task another policy, and its own back, which is what moves a task at once.
 *
 * Limits: a task that sets its own policy in the microseconds between may lose that. Without a living
 * loader nobody guards. A kernel that has a server for sched_ext tasks gets there by itself.
 */
#define _GNU_SOURCE /* SCHED_BATCH */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loader.h"

#define LOOK_EVERY_US 200000

/* Tasks of real-time and deadline policies are not sched_ext's. */
static bool may_be_ours(int policy)
{
	enum { POLICY_EXT = 7 };

	return policy == SCHED_OTHER || policy == SCHED_BATCH || policy == SCHED_IDLE || policy == POLICY_EXT;
}

/* How many tasks it moved. */
static int move_thread(int tid)
{
	const struct sched_param none = {};
	int with_flag = sched_getscheduler(tid), policy = with_flag & ~SCHED_RESET_ON_FORK;

	if (with_flag < 0 || !may_be_ours(policy))
		return 0;
	return !sched_setscheduler(tid, policy == SCHED_BATCH ? SCHED_OTHER : SCHED_BATCH, &none) &&
	       !sched_setscheduler(tid, with_flag, &none);
}

/* Calls visit for each entry of a folder that is a number; returns the sum of what it says. */
static int each_number(const char *path, int (*visit)(int number))
{
	struct dirent *entry;
	DIR *dir = opendir(path);
	int sum = 0;

	if (!dir)
		return 0; /* the process has ended meanwhile */
	while ((entry = readdir(dir)))
		if (isdigit(entry->d_name[0]))
			sum += visit(atoi(entry->d_name));
	closedir(dir);
	return sum;
}

static int move_process(int pid)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	return each_number(path, move_thread);
}

static void *guard(void *unused)
{
	bool before = false, now;

	for (;; before = now) {
		usleep(LOOK_EVERY_US);
		now = is_detaching();
		if (before && now)
			note("the kernel does not get on with detaching: moved %d tasks to the stock scheduler",
			     each_number("/proc", move_process));
	}
	return unused;
}

enum temper_status start_guard(void)
{
	const struct sched_param lowest = { .sched_priority = sched_get_priority_min(SCHED_FIFO) };
	pthread_attr_t attributes;
	pthread_t thread;
	int error;

	pthread_attr_init(&attributes);
	pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(&attributes, SCHED_FIFO);
	pthread_attr_setschedparam(&attributes, &lowest);
	error = pthread_create(&thread, &attributes, guard, NULL);
	pthread_attr_destroy(&attributes);
	if (error)
		return fail(TEMPER_FAILED, "cannot start a real-time thread, which keeps a detach from starving: %s; CAP_SYS_NICE is needed",
			    strerror(error));
	return TEMPER_OK;
}
