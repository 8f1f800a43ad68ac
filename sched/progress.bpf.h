/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Nothing starves.
 *
 * Problem: tiers are strict, and the kernel ejects a scheduler that leaves any
 * runnable task waiting for 30 s. What the kernel itself has to do must not wait at all.
 *
 * Method: duty() names the tasks that do kernel work: kernel threads, exiting tasks,
 * and those that may not migrate just now. They queue as `system`, beyond its share.
 * For the rest there is parole: each CPU remembers when it last ran a tier; when a
 * task of it has been queued for longer than the tier's period, the next dispatch
 * takes one out of order. Standard gets a slice each 100 ms. Background is sent back
 * as soon as it runs, which takes the kernel about a quarter of a millisecond, each
 * 250 ms or, with more than 64 of them queued, more often, so that each has its turn
 * within 16 s. It works CPU by CPU, and so for tasks that only one CPU can run.
 *
 * Limits: 0.1 % of a CPU for up to 64 background tasks; in proportion beyond.
 */
#ifndef TEMPER_PROGRESS_BPF_H
#define TEMPER_PROGRESS_BPF_H

#include "gap.bpf.h"

#define STANDARD_PERIOD (100 * MSEC)
#define BACKGROUND_PERIOD (250 * MSEC)
#define BACKGROUND_TURN (16000 * MSEC)

static __always_inline bool may_not_migrate(struct task_struct *p)
{
	/* The programs themselves run with migration disabled, which shows on the current task. */
	if (p->migration_disabled == 1)
		return bpf_get_current_task_btf() != p;
	return p->migration_disabled;
}

static __always_inline bool duty(struct task_struct *p)
{
	return (p->flags & (PF_KTHREAD | PF_EXITING)) || may_not_migrate(p);
}

static u32 tier_of(struct task_struct *p, struct task_state *t, u64 now)
{
	if (duty(p))
		return TIER_SYSTEM;
	u32 tier = tier_of_slot(t->cgroup);

	return tier == TIER_SYSTEM ? tier_within_budget(now) : tier;
}

static __always_inline u64 parole_period(u32 tier, u32 waiting)
{
	if (tier == TIER_STANDARD)
		return STANDARD_PERIOD;
	u64 turn = BACKGROUND_TURN / waiting;

	return turn < BACKGROUND_PERIOD ? turn : BACKGROUND_PERIOD;
}

/* The tier that this CPU must serve now, out of order; NR_TIERS: none. */
static u32 overdue_tier(struct cpu_state *c, u64 now)
{
	for (u32 tier = TIER_STANDARD; tier < NR_TIERS; tier++) {
		u32 waiting = queued[tier] + c->pinned[tier];

		if (!waiting)
			c->served_at[tier] = now;
		else if (now - c->served_at[tier] > parole_period(tier, waiting))
			return tier;
	}
	return NR_TIERS;
}

#endif
