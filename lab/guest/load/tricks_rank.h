/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tricks that change what a task is to the scheduler: its cgroup, name, weight, policy, affinity.
 */
#ifndef TEMPER_TRICKS_RANK_H
#define TEMPER_TRICKS_RANK_H

#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "trick.h"

static void make_and_remove(void)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/b/%d", own, getpid());
	check(!mkdir(path, 0755) && !rmdir(path), path);
}

/*
 * One has the controller of 400 cgroups turned on and off, which takes the kernel's lock of all cgroups for long. The kernel's
 * workers want it, too, for what the others make and remove.
 */
static bool turns_controllers;

static void prepare_controllers(void)
{
	char path[512], name[16];

	snprintf(path, sizeof(path), "%s/b/c0", own);
	turns_controllers = !mkdir(path, 0755);
	for (int i = 1; turns_controllers && i < 400; i++) {
		snprintf(name, sizeof(name), "b/c%d", i);
		make_cgroup(name);
	}
}

static void turn_controllers(void)
{
	if (!turns_controllers) {
		make_and_remove();
		return;
	}
	write_to("b", "cgroup.subtree_control", "+cpu");
	write_to("b", "cgroup.subtree_control", "-cpu");
}

/* Processes and threads between own cgroups, at a high rate. */
static void move_process(void)
{
	write_to("b", "cgroup.procs", "0");
	compute(SHORT);
	write_to("a", "cgroup.procs", "0");
	compute(SHORT);
}

static void prepare_threads(void)
{
	make_cgroup("b/x");
	make_cgroup("b/y");
	write_to("b/x", "cgroup.type", "threaded");
	write_to("b/y", "cgroup.type", "threaded");
	write_to("b", "cgroup.procs", "0");
}

static void move_thread(void)
{
	write_to("b/x", "cgroup.threads", "0");
	compute(SHORT);
	write_to("b/y", "cgroup.threads", "0");
	compute(SHORT);
}

/* Of a kernel thread, and of a cgroup that is the system's. */
static void prepare_names(void)
{
	make_cgroup("b/system.slice");
	write_to("b/system.slice", "cgroup.procs", "0");
}

static void rename_self(void)
{
	static const char *const names[] = { "kworker/0:0", "migration/0", "systemd", "scx_temper" };
	static int i;

	prctl(PR_SET_NAME, names[i++ % 4]);
	compute(SHORT);
}

/* A child for each step down, since nobody may go up again. */
static void renice(void)
{
	pid_t child = fork();

	check(child >= 0, "fork");
	if (child == 0) {
		for (int nice = 1; nice < 20; nice++) {
			setpriority(PRIO_PROCESS, 0, nice);
			compute(SHORT);
		}
		_exit(0);
	}
	check(waitpid(child, NULL, 0) == child, "wait");
}

static void autogroup(void)
{
	static int fd = -1;

	if (fd < 0) {
		setsid();
		fd = open("/proc/self/autogroup", O_WRONLY);
		check(fd >= 0, "autogroup");
	}
	if (write(fd, "5", 1) != 1)
		check(errno == EAGAIN || errno == EPERM, "autogroup");
	compute(SHORT);
}

struct attributes {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
	uint32_t util_min, util_max;
};

static bool set_attributes(uint32_t policy, uint64_t flags, uint32_t priority)
{
	struct attributes a = {
		.size = sizeof(a), .policy = policy, .flags = flags, .priority = priority,
		.runtime = policy == 6 ? 5000000 : 100000, .deadline = policy == 6 ? 10000000 : 0, .period = policy == 6 ? 10000000 : 0,
		.util_min = 1024, .util_max = 1024,
	};

	return !syscall(SYS_sched_setattr, 0, &a, 0);
}

static void change_policy(void)
{
	static const uint32_t policies[] = { SCHED_BATCH, SCHED_OTHER, 7 /* SCHED_EXT */, SCHED_OTHER };
	static int i;

	set_attributes(policies[i++ % 4], 0, 0);
	compute(SHORT);
}

static void prepare_idle(void)
{
	check(set_attributes(SCHED_IDLE, 0, 0), "SCHED_IDLE");
}

static void prepare_deadline(void)
{
	must_fail(!set_attributes(6 /* SCHED_DEADLINE */, 0, 0) && !set_attributes(SCHED_FIFO, 0, 1));
}

/* With SCHED_FLAG_KEEP_ALL and both clamps; a kernel may be built without. */
static void clamp(void)
{
	if (!set_attributes(0, 0x18 | 0x60, 0))
		refused = true;
	compute(SHORT);
}

static void change_affinity(void)
{
	static int i, cpus;

	if (!cpus)
		cpus = sysconf(_SC_NPROCESSORS_ONLN);
	int cpu = i++ % (cpus + 1);

	if (cpu == cpus)
		pin(0, cpus - 1);
	else
		pin(cpu, cpu);
	compute(SHORT);
}

#endif
