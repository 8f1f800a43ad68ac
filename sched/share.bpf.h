/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Fairness inside a tier.
 *
 * Problem: cgroups share by cpu.weight at every level, tasks by nice, whatever
 * they are nested in, with one queue a tier and no tree to walk at each dispatch.
 *
 * Method: a task's virtual time advances by the CPU time it used, divided by the
 * share of its tier that it is due just now. That share is its weight over the sum
 * of the active weights in its cgroup, times the same ratio for each cgroup above.
 * Example: A and B have weights 100 and 300, and hold one and two active tasks. A's
 * task is due 1/4, each of B's 3/8; over a second of one CPU they get 250, 375 and
 * 375 ms. "Active" means runnable in that tier: a subtree that only holds background
 * work does not dilute the critical one beside it. Sums change when the first task
 * of a cgroup wakes or the last one sleeps, under the cgroup's lock on its own level
 * and by atomic addition on the next: additions commute, so no two levels are ever
 * locked together.
 *
 * Limits: what a task is due changes while it runs, and is applied as it stands when
 * the task is charged, which for interrupted background is when it goes on. One that slept keeps at
 * most one slice of credit, and one that runs on MOST_LAG. The system's tasks beyond their buckets stand in other tiers, and are
 * due there no more than the tier's own on that CPU. Critical work that is over its reservation (tokens.bpf.h) queues with
 * standard; the weights of both then count as those of one tier.
 */
#ifndef TEMPER_SHARE_BPF_H
#define TEMPER_SHARE_BPF_H

#include "tokens.bpf.h"
#include "fence.bpf.h"

#define WHOLE (1ULL << 30) /* a share of 1 */
#define MOST_LAG (50 * MSEC) /* of virtual time: one task may have twelve times as many turns as another, not more */
#define OWN_LASTS (100 * MSEC) /* two periods of starvation turns: where a tier's own task waits, one has run since */

/*
 * How long a task runs before others of its tier have their turn. Background is
 * interrupted whenever somebody else wants its CPU, so there a longer turn costs nobody.
 */
static const u64 slice_ns[NR_TIERS] = { 3 * MSEC, 3 * MSEC, 3 * MSEC, 10 * MSEC };

static u64 tier_clock[NR_TIERS]; /* virtual time of the task that started last */

/* One register holds the sum's number where it is compared and where it is used: a copy would not be bounded. */
static __always_inline bool change_one(u32 *index, u64 tier, s32 by, s64 *delta)
{
	struct cgroup_slot *s = slot_at(*index);
	bool turned;

	barrier_var(tier);
	if (!s || tier >= NR_SUMS)
		return false;
	relaxed_add(&s->sum[tier], *delta);
	bpf_spin_lock(&s->lock);
	s->nr[tier] += by;
	turned = s->nr[tier] == (by > 0 ? 1 : 0);
	if (turned && by > 0)
		s->charged[tier] = s->weight;
	*delta = by > 0 ? s->charged[tier] : -(s64)s->charged[tier];
	bpf_spin_unlock(&s->lock);
	*index = s->parent;
	return turned && *index != NO_SLOT;
}

/*
 * Count `weight` in or out of the sums, from the task's cgroup up to the first that was active already. Global, so that
 * the verifier follows the loop once.
 */
__noinline bool change_active(u32 index, u32 tier, s32 by, u32 weight)
{
	s64 delta = by > 0 ? weight : -(s64)weight;

	climb(change_one(&index, tier, by, &delta));
	return true;
}

/* Critical and standard are counted together as well where they may have to share: as SERVICES. */
static void count_active(struct task_state *t, s32 by)
{
	u32 tier = t->active_tier;

	if (config.loan == LOAN_IDLE && tier == TIER_CRITICAL)
		ordered_add(&critical_active, by);
	change_active(t->cgroup, tier, by, t->active_weight);
	if (config.reservation && (tier == TIER_CRITICAL || tier == TIER_STANDARD))
		change_active(t->cgroup, SERVICES, by, t->active_weight);
}

static void activate(struct task_state *t, u32 tier, u32 weight)
{
	if (t->active)
		return;
	t->active = true;
	t->active_tier = tier;
	t->active_weight = weight;
	count_active(t, 1);
}

static void set_cgroup_weight(struct cgroup *cgrp, u32 weight)
{
	struct cgroup_slot *s = slot_at(slot_of(cgrp)), *parent;
	s64 delta[NR_SUMS] = {};

	if (!s || s->id != untrusted(cgrp)->kn->id)
		return;
	bpf_spin_lock(&s->lock);
	s->weight = weight;
	for (u32 t = 0; t < NR_SUMS; t++) {
		if (s->nr[t]) {
			delta[t] = (s64)weight - s->charged[t];
			s->charged[t] = weight;
		}
	}
	bpf_spin_unlock(&s->lock);
	parent = s->parent == NO_SLOT ? NULL : slot_at(s->parent);
	if (parent)
		for (u32 t = 0; t < NR_SUMS; t++)
			relaxed_add(&parent->sum[t], delta[t]);
}

/* Critical and standard tasks in one queue share by all weights of both. */
static __always_inline bool shares_with_services(struct task_state *t, u64 now)
{
	return critical_is_over(now) && t->tier == TIER_STANDARD && (t->active_tier == TIER_CRITICAL || t->active_tier == TIER_STANDARD);
}

static __always_inline bool share_once(u32 *index, u64 tier, u64 *weight, u64 *share)
{
	struct cgroup_slot *s = slot_at(*index);

	barrier_var(tier);
	if (!s || tier >= NR_SUMS)
		return false;
	u64 sum = s->sum[tier];

	if (sum > *weight)
		*share = *share * *weight / sum;
	*weight = s->charged[tier];
	*index = s->parent;
	return *index != NO_SLOT;
}

/* The share of the sum `tier`, of WHOLE, that an active task of this weight in cgroup `index` is due now; at least 1. */
__noinline u64 share_of(u32 index, u32 tier, u32 task_weight)
{
	u64 share = WHOLE, weight = task_weight;

	climb(share_once(&index, tier, &weight, &share));
	return share ?: 1;
}

static __always_inline struct own *own_of(s32 cpu, u32 tier)
{
	return &cpu_state(cpu)->own[tier % NR_TIERS];
}

static __always_inline bool ran_lately(struct own *own, u64 now)
{
	return own->share && (s64)(now - own->ran_at) < (s64)OWN_LASTS;
}

/* By one that is due next to nothing nobody is measured, where there is another. */
static __always_inline void note_own(struct task_struct *p, struct own *own, u64 share, u64 vtime, u64 now)
{
	if (own->pid != p->pid && share < own->share && ran_lately(own, now))
		return;
	own->share = share;
	own->ran_at = now;
	own->vtime = vtime;
	own->pid = p->pid;
}

/*
 * A task of the system that stands in another tier counts as no more than one of that tier's own: where it is all that system
 * has active, it would come before each of many. What serves this CPU counts as one of them, however much system has elsewhere,
 * and is compared with them alone: its time starts from theirs, and not from the clock, which those of other CPUs move.
 */
static __always_inline u64 vtime_beside_own(struct task_struct *p, struct own *own, u64 share, u64 used, u64 now)
{
	u64 vtime = p->scx.dsq_vtime;

	if (ran_lately(own, now)) {
		if (serves_one_cpu(p) || own->share < share)
			share = own->share;
		if (serves_one_cpu(p) && (s64)(vtime - own->vtime) < 0)
			vtime = own->vtime;
	}
	return vtime + used * WHOLE / share;
}

/* Charge a running task, and the tier that it belongs to, for the CPU time since it was last charged. */
static void charge(struct task_struct *p, struct task_state *t, u64 now)
{
	u64 used = p->se.sum_exec_runtime - t->charged_exec;
	u32 home = t->active_tier;

	if (!used || home >= NR_TIERS)
		return;
	struct temper_stats *s = get_stats();

	if (!s)
		return;
	t->charged_exec += used;
	s->tier[home].run_ns += used;
	u64 share = share_of(t->cgroup, shares_with_services(t, now) ? SERVICES : home, t->active_weight);
	s32 cpu = scx_bpf_task_cpu(p);
	struct own *own = own_of(cpu, t->tier);

	if (home == TIER_SYSTEM && t->tier != TIER_SYSTEM) {
		set_vtime(p, vtime_beside_own(p, own, share, used, now));
	} else {
		u64 vtime = p->scx.dsq_vtime + used * WHOLE / share;

		set_vtime(p, vtime);
		if (home == t->tier)
			note_own(p, own, share, vtime, now);
	}
	charge_buckets(p, cpu, home, t->tier, used);
}

/* What it has used is charged where it was counted. */
static void deactivate(struct task_struct *p, struct task_state *t, u64 now)
{
	if (!t->active)
		return;
	charge(p, t, now);
	t->active = false;
	count_active(t, -1);
}

/* From where on a task may stand: with no more than a slice of credit. */
static __always_inline u64 oldest_position(struct task_struct *p, u32 tier, struct own *own, u64 now)
{
	if (tier != TIER_SYSTEM && serves_one_cpu(p) && ran_lately(own, now))
		return own->vtime;
	return tier_clock[tier] - slice_ns[tier];
}

/* Where in its tier's queue a task stands: its own virtual time in that tier. */
static u64 queue_position(struct task_struct *p, struct task_state *t, u64 now)
{
	u32 tier = t->tier, last = t->vtime_tier;

	if (tier >= NR_TIERS)
		return 0;
	struct own *own = own_of(scx_bpf_task_cpu(p), tier);
	u64 position = oldest_position(p, tier, own, now);

	/* Virtual times of different tiers cannot be compared. Who goes back and forth gets no credit for it. */
	if (last != tier) {
		if (last < NR_TIERS)
			t->vtime[last] = p->scx.dsq_vtime;
		t->vtime_tier = tier;
		set_vtime(p, t->vtime[tier]);
	}
	if ((s64)(p->scx.dsq_vtime - position) < 0)
		set_vtime(p, position);
	else
		position = p->scx.dsq_vtime;
	if (own->pid == p->pid)
		own->vtime = position;
	return position;
}

/*
 * Where CPUs differ in how many they serve, so do the virtual times of what is bound to them, and the clock follows the fastest.
 * Whoever is queued starts from the clock: one that runs on, as far behind it as it likes, would keep that one waiting for as long.
 */
static void limit_lag(struct task_struct *p, struct task_state *t)
{
	u32 tier = t->tier;

	if (tier >= NR_TIERS || t->vtime_tier != tier)
		return;
	u64 oldest = tier_clock[tier] - MOST_LAG;

	if ((s64)(p->scx.dsq_vtime - oldest) < 0)
		set_vtime(p, oldest);
}

/* A task starts to run: the clock follows, but for what serves one CPU, whose time is that CPU's. */
static void advance_clock(struct task_struct *p, struct task_state *t)
{
	u32 tier = t->tier;

	if (tier < NR_TIERS && t->vtime_tier == tier && (s64)(p->scx.dsq_vtime - tier_clock[tier]) > 0 && !serves_one_cpu(p))
		tier_clock[tier] = p->scx.dsq_vtime;
}

#endif
