/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What cpu.max is, on kernels that tell no scheduler of it: those before 6.17.
 *
 * Problem: a limit has to be known before a task of its cgroup runs for long, and its changes soon, with no more than
 * what such a kernel offers.
 *
 * Method: the kernel's fair class keeps quota, period and burst where the cpu controller's group is, whoever
 * schedules. A cgroup slot remembers the address of its cgroup, from which that can be found; not when the cgroup comes,
 * since the kernel links the two a moment later. Each READ_PERIOD all look-ups of limits count as outdated (limits_gen), and
 * who looks one up anew reads it of all cgroups on its way up. Cgroups without a task that is about to run are not looked at.
 *
 * Limits: a change is in force after READ_PERIOD, and when a task of the cgroup next begins to run. A quota may be read
 * together with the period before it, and is until the next look.
 */
#ifndef TEMPER_KERNEL_LIMITS_BPF_H
#define TEMPER_KERNEL_LIMITS_BPF_H

#include "quota.bpf.h"
#include "timer.bpf.h"

#define READ_PERIOD (100 * MSEC)
#define NO_QUOTA (~0ULL) /* the kernel's RUNTIME_INF */

/* The cpu controller's group of a cgroup: it is the container of the controller's state there. */
static struct task_group *group_of(u64 cgroup)
{
	u64 state = 0, at = bpf_core_field_offset(struct cgroup, subsys) + sizeof(state) * KERNEL_VALUE(cgroup_subsys_id, cpu_cgrp_id);

	if (bpf_probe_read_kernel(&state, sizeof(state), (void *)(cgroup + at)) || !state)
		return NULL;
	return (struct task_group *)(state - bpf_core_field_offset(struct task_group, css));
}

/* What its limit is now. */
static void read_limit(u32 index)
{
	struct cgroup_slot *s = slot_at(index);
	u64 quota, period, burst;
	struct task_group *group;

	if (!config.read_limits || !s || !s->cgroup)
		return;
	group = group_of(s->cgroup);
	if (!group || bpf_core_read(&quota, sizeof(quota), &group->cfs_bandwidth.quota) ||
	    bpf_core_read(&period, sizeof(period), &group->cfs_bandwidth.period) ||
	    bpf_core_read(&burst, sizeof(burst), &group->cfs_bandwidth.burst))
		return;
	set_limit(index, quota == NO_QUOTA ? 0 : quota, period, burst);
	/* Partner: close_limit(), which clears the address first. */
	if (!*(volatile u64 *)&s->cgroup)
		set_limit(index, 0, 0, 0);
}

static int read_limits_anew(void *map, u32 *index, struct timer_slot *slot)
{
	if (left)
		return 0;
	ordered_add(&limits_gen, 1);
	bpf_timer_start(&slot->timer, READ_PERIOD, 0);
	return 0;
}

#endif
