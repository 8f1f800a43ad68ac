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
 * A queue is ordered by virtual deadlines: by when a slice would be over that a task had as slowly as it is due it. Were it
 * ordered by virtual times, whoever is new or wakes would come first whatever its share, and those who take turns, be it
 * process by process, would have what one that runs on is denied. Example: with 1/10 of the tier, a slice of 3 ms is over
 * after 30 ms of virtual time; with 9/10 after 3.3 ms. Who slept has up to one slice of credit, and then is due at
 * once, if its cgroup's tasks together have had less than they are due; who is new has none.
 *
 * Limits: what a task is due changes while it runs, and is applied as it stands when
 * the task is charged, which for interrupted background is when it goes on. One that runs on lags by at most MOST_LAG, or
 * a slice of its own. A slice counts for no more than all CPUs can do in MOST_DEBT, and nobody is further ahead of the clock:
 * of the system beyond its budgets the clock knows nothing, and who was ahead of it by all that would not run for seconds.
 * Only the cgroup that a task is in is asked for what it has had: who has many cgroups can have their tasks take turns. The system's tasks beyond their budgets stand in other tiers, and are
 * due there no more than the tier's own on that CPU. Critical work that is over its reservation (budget.bpf.h) queues with
 * standard; the weights of both then count as those of one tier.
 */
#ifndef TEMPER_SHARE_BPF_H
#define TEMPER_SHARE_BPF_H

#include "budget.bpf.h"
#include "fence.bpf.h"

#define WHOLE (1ULL << 30) /* a share of 1 */
#define MOST_LAG (50 * MSEC) /* of virtual time, or a slice: one task may have twelve times as many turns as another, not more */
#define MOST_AHEAD (100 * MSEC) /* of each CPU; in the order of deadlines, those of large share run ahead of the clock */
#define MOST_DEBT (300 * MSEC) /* of each CPU: it and a slice of as much are over within the shortest patience of age.bpf.h */
#define OWN_HOLDS (100 * MSEC) /* two periods of parole: where a tier's own task waits, one has run since */

/*
 * How long a task runs before others of its tier have their turn. Background is
 * interrupted whenever somebody else wants its CPU, so there a longer turn costs nobody.
 */
static const u64 slice_ns[NR_TIERS] = { 3 * MSEC, 3 * MSEC, 3 * MSEC, 10 * MSEC };

/* A tier's virtual time: the CPU time that its tasks have had, but at most MOST_AHEAD behind who started last. */
static u64 tier_clock[NR_TIERS];

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

	if (!s || s->id != cgrp->kn->id)
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
static __always_inline bool shares_with_services(struct task_state *t)
{
	return critical_is_over() && t->tier == TIER_STANDARD && (t->active_tier == TIER_CRITICAL || t->active_tier == TIER_STANDARD);
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

static __always_inline struct own *own_of(struct task_struct *p, u32 tier)
{
	return &cpu_state(scx_bpf_task_cpu(p))->own[tier % NR_TIERS];
}

static __always_inline bool ran_lately(struct own *own)
{
	return own->share && (s64)(clock_ns() - own->ran_at) < (s64)OWN_HOLDS;
}

/* By one that is due next to nothing nobody is measured, where there is another. */
static __always_inline void note_own(struct task_struct *p, u32 tier, u64 share, u64 vtime)
{
	struct own *own = own_of(p, tier);

	if (own->pid != p->pid && share < own->share && ran_lately(own))
		return;
	own->share = share;
	own->ran_at = clock_ns();
	own->vtime = vtime;
	own->pid = p->pid;
}

/*
 * What an active task is due just now. One of the system that stands in another tier counts as no more than one of that tier's own:
 * where it is all that system has active, it would come before each of many. What serves this CPU counts as one of them, however
 * much system has elsewhere.
 */
static __always_inline u64 due_share(struct task_struct *p, struct task_state *t)
{
	u32 tier = t->tier, home = t->active_tier;
	u64 share = share_of(t->cgroup, shares_with_services(t) ? SERVICES : home, t->active_weight);

	if (home == TIER_SYSTEM && tier != TIER_SYSTEM) {
		struct own *own = own_of(p, tier);

		if (ran_lately(own) && (serves_one_cpu(p) || own->share < share))
			return own->share;
	}
	return share;
}

static __always_inline u64 most_debt(void)
{
	return MOST_DEBT * config.nr_online;
}

/* Virtual time within what a task may owe. */
static __always_inline u64 within_debt(u64 vtime, u32 tier)
{
	u64 most = tier_clock[tier] + most_debt();

	return (s64)(vtime - most) > 0 ? most : vtime;
}

/* Does what a task has in this tier count for the tier's clock? Not of the system beyond its budget, nor of who is lent it. */
static __always_inline bool counts_in(u32 tier, u32 home)
{
	return tier == home || (tier > home && home != TIER_SYSTEM);
}

/* All tasks of a cgroup together are due what one of them is, times the sum of their weights over its own. */
static __always_inline void charge_cgroup(struct task_state *t, u32 tier, u64 by)
{
	struct cgroup_slot *s = slot_at(t->cgroup);
	u32 home = shares_with_services(t) ? SERVICES : t->active_tier;

	if (!s || home >= NR_SUMS)
		return;
	u64 sum = s->sum[home];

	relaxed_add(&s->vtime[tier], sum > t->active_weight ? by * t->active_weight / sum : by);
}

/* Charge a running task, and the tier that it belongs to, for the CPU time since it was last charged. */
static void charge(struct task_struct *p, struct task_state *t)
{
	u64 used = p->se.sum_exec_runtime - t->charged_exec;
	u32 home = t->active_tier, tier = t->tier;

	if (!used || home >= NR_TIERS || tier >= NR_TIERS)
		return;
	struct temper_stats *s = get_stats();

	if (!s)
		return;
	t->charged_exec += used;
	s->tier[home].run_ns += used;
	u64 share = due_share(p, t), vtime = t->vtime[tier], by = used * WHOLE / share;
	struct own *own = own_of(p, tier);

	/* It is compared with those of its CPU alone, and not with the clock, which those of others move. */
	if (home == TIER_SYSTEM && tier != TIER_SYSTEM && serves_one_cpu(p) && ran_lately(own) && (s64)(vtime - own->vtime) < 0)
		vtime = own->vtime;
	if (by > most_debt())
		by = most_debt();
	if (counts_in(tier, home)) {
		charge_cgroup(t, tier, by);
		relaxed_add(&tier_clock[tier], used);
	}
	vtime = within_debt(vtime + by, tier);
	t->vtime[tier] = vtime;
	if (home == tier)
		note_own(p, home, share, vtime);
	charge_budget(p, home, tier, used);
}

/* What it has used is charged where it was counted. */
static void deactivate(struct task_struct *p, struct task_state *t)
{
	if (!t->active)
		return;
	charge(p, t);
	t->active = false;
	count_active(t, -1);
}

/* How long a slice takes in virtual time. Nothing for who was lent the tier, is to end, or serves a CPU: somebody waits for that. */
static __always_inline u64 virtual_slice(struct task_struct *p, struct task_state *t)
{
	u32 tier = t->tier;

	if (tier >= NR_TIERS || tier < t->active_tier || serves_one_cpu(p))
		return 0;
	u64 ns = slice_ns[tier] * WHOLE / due_share(p, t);

	return ns < most_debt() ? ns : most_debt();
}

/* Have the tasks of a cgroup together had as much as they are due? What they have had less is remembered up to a slice. */
static __always_inline bool had_its_due(struct task_struct *p, struct task_state *t)
{
	struct cgroup_slot *s = slot_at(t->cgroup);
	u32 tier = t->tier;

	if (!s || tier >= NR_TIERS)
		return true;
	s64 ahead = s->vtime[tier] - tier_clock[tier], most = most_debt();

	if (ahead > most)
		s->vtime[tier] = tier_clock[tier] + most;
	else if (ahead < -(s64)MOST_LAG && ahead < -(s64)virtual_slice(p, t))
		s->vtime[tier] = tier_clock[tier] - MOST_LAG;
	return ahead > 0;
}

/*
 * A task begins to wait in a tier. Who is new there or comes from another tier starts from the clock: nothing is known of it that
 * would be to its credit. So does one that wakes where its cgroup has had its due: others of it may have slept as long, and be next.
 */
static __always_inline void begin_vtime(struct task_struct *p, struct task_state *t, bool comes, bool wakes)
{
	u32 tier = t->tier % NR_TIERS;

	if (!t->vtime[tier])
		t->vtime[tier] = tier_clock[tier];
	if ((s64)(t->vtime[tier] - tier_clock[tier]) >= 0 || serves_one_cpu(p))
		return;
	if (comes || (wakes && counts_in(tier, t->active_tier) && had_its_due(p, t)))
		t->vtime[tier] = tier_clock[tier];
}

/* Where in its tier's queue a task stands. Who has slept has a slice of credit, and is due now. */
static __noinline u64 virtual_deadline(struct task_struct *p, struct task_state *t)
{
	u32 tier = t->tier;

	if (tier >= NR_TIERS)
		return 0;
	u64 slice = virtual_slice(p, t);
	u64 oldest = tier_clock[tier] - (counts_in(tier, t->active_tier) ? slice : slice_ns[tier]);
	struct own *own = own_of(p, tier);

	if (tier != TIER_SYSTEM && serves_one_cpu(p) && ran_lately(own))
		oldest = own->vtime;
	if ((s64)(t->vtime[tier] - oldest) < 0)
		t->vtime[tier] = oldest;
	if (own->pid == p->pid)
		own->vtime = t->vtime[tier];
	return t->vtime[tier] + slice;
}

/*
 * Where CPUs differ in how many they serve, so do the virtual times of what is bound to them, and the clock follows the fastest.
 * Whoever is queued starts from the clock: one that runs on, as far behind it as it likes, would keep that one waiting for as long.
 */
static void limit_lag(struct task_struct *p, struct task_state *t)
{
	u32 tier = t->tier;

	if (tier >= NR_TIERS)
		return;
	s64 lag = tier_clock[tier] - t->vtime[tier];

	/* One whose slice takes longer stands so far behind in the order of deadlines. */
	if (lag > (s64)MOST_LAG && lag > (s64)virtual_slice(p, t))
		t->vtime[tier] += lag - MOST_LAG;
}

/*
 * A task starts to run: the clock follows, but for what serves one CPU, whose time is that CPU's. Where some of those that are
 * active cannot run, since they wait for a limit or may run on a few CPUs only, all others get more than they are due.
 */
static void advance_clock(struct task_struct *p, struct task_state *t)
{
	u32 tier = t->tier;
	u64 most = MOST_AHEAD * config.nr_online;

	if (tier < NR_TIERS && (s64)(t->vtime[tier] - tier_clock[tier] - most) > 0 && !serves_one_cpu(p))
		tier_clock[tier] = t->vtime[tier] - most;
}

#endif
