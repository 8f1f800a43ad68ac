/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Nothing starves behind a higher tier.
 *
 * Problem: tiers are strict, and the kernel ejects a scheduler that leaves any
 * runnable task waiting for 30 s. What the kernel itself has to do must not wait at all.
 *
 * Method: duty() names the tasks that do kernel work for others, as far as token buckets of each CPU go (tokens.bpf.h):
 * kernel threads of one CPU, and exiting tasks, these for a LEAST_TURN at a time. They queue as `system`, beyond its share.
 * For the rest there are starvation turns: each CPU remembers when it last ran a tier; when a
 * task of it has been queued for longer than the tier's period, the next dispatch
 * takes one out of order, for a turn. The period shrinks with the number that waits, so that
 * all of them have had a turn in ROUND; so does the turn, down to LEAST_TURN. It works CPU
 * by CPU, and so for tasks that only one CPU can run. The turn is protected: its CPU cannot be claimed, and a
 * timer ends it. A task that is interrupted as it starts is switched in and out within schedule(), and
 * would never get on with a lock that it holds or a signal that is to kill it.
 *
 * A task that has been asked to die, stop or freeze is a duty from its next turn on. age.bpf.h puts it before all others
 * of its queue, and for as many as it has seen there a turn comes after ASKED_PERIOD. A child of vfork() runs in its parent's
 * tier, if that is higher, until it has called exec: the parent waits for it.
 *
 * Limits: of a CPU, 6 % go to standard and 0.1 % to background, for up to 160 and 32 waiting tasks a CPU, in
 * proportion beyond; 6 % go to critical behind all that comes first together. Who waits in a tier for how long is
 * age.bpf.h's business.
 */
#ifndef TEMPER_PROGRESS_BPF_H
#define TEMPER_PROGRESS_BPF_H

#include "age.bpf.h"
#include "rt_hogs.bpf.h"

#define LEAST_TURN (MSEC / 4)
#define ASKED_PERIOD (3 * MSEC) /* between turns of tasks that are to end */

/* For tiers that another can keep from running: a turn of so long each so often. */
static const struct {
	u64 period, turn;
} starvation[NR_TIERS] = {
	[TIER_CRITICAL] = { 50 * MSEC, 3 * MSEC }, /* behind duties: the system tier else has a share */
	[TIER_STANDARD] = { 50 * MSEC, 3 * MSEC },
	[TIER_BACKGROUND] = { 250 * MSEC, LEAST_TURN },
};

static __always_inline bool duty(struct task_struct *p, struct task_state *t)
{
	return (serves_one_cpu(p) && may_serve_first(p)) || ((p->flags & PF_EXITING) && may_end_first(p)) || asked_to_end(p, t);
}

/* Does it run before its own tier, to end? */
static __always_inline bool ends_first(struct task_state *t)
{
	return t->tier == TIER_SYSTEM && t->active_tier != TIER_SYSTEM;
}

static __always_inline u32 tier_of_group(struct task_state *t)
{
	return t->crowded ? TIER_BACKGROUND : tier_of_slot(t->cgroup);
}

/*
 * Does its parent sleep until it has called exec? By CLONE_PARENT a task chooses as its parent one that does not, and that may
 * be of any tier: so the one that sleeps is asked for.
 */
static __always_inline bool parent_waits_for(struct task_struct *p)
{
	struct completion *done = untrusted(p)->vfork_done;
	struct list_head *line, *first;

	if (!done)
		return false;
	line = (void *)((u64)done + bpf_core_field_offset(struct completion, wait.task_list));
	first = BPF_CORE_READ(line, next);
	if (!first || first == line)
		return false;
	first = (void *)((u64)first - bpf_core_field_offset(struct swait_queue, task_list));
	return BPF_CORE_READ((struct swait_queue *)first, task) == untrusted(p)->real_parent;
}

/* The tier that a task belongs to, whatever it does just now. */
static u32 home_tier(struct task_struct *p, struct task_state *t)
{
	if (p->flags & PF_KTHREAD)
		return tier_of_kthread(p);
	if (is_rt_throttled(p))
		return TIER_BACKGROUND;
	u32 tier = tier_of_group(t);

	if (parent_waits_for(p)) {
		struct task_state *parent = task_state(p->real_parent);
		u32 its = parent ? tier_of_group(parent) : tier;

		if (its < tier)
			return its;
	}
	return tier;
}

/* The tier that it is in just now. */
static u32 tier_of(struct task_struct *p, struct task_state *t, u32 home, u64 now)
{
	u32 tier = home, boosted;

	if (duty(p, t))
		return TIER_SYSTEM;
	if (t->in_gap)
		return TIER_BACKGROUND;
	boosted = boosted_to(p, t);
	if (boosted < tier)
		tier = boosted;
	if (tier == TIER_SYSTEM && !serves_one_cpu(p)) {
		tier = tier_of_system(scx_bpf_task_cpu(p), (p->flags & PF_KTHREAD) && boosted > TIER_CRITICAL, now);
		if (tier == TIER_SYSTEM)
			return tier;
	}
	return tier <= TIER_CRITICAL ? tier_of_critical(now) : tier;
}

/*
 * Which tier is the task in now? It is counted where it belongs, from the moment that it becomes runnable: the kernel
 * has an event for that (ops.runnable), which would cost more than all that is done here.
 */
static __noinline u32 enter_tier(struct task_struct *p, struct task_state *t, u64 now)
{
	u32 home = home_tier(p, t);
	bool wakes = !t->active;

	if (wakes) {
		t->runnable_at = now;
		if (!t->waits_since)
			t->waits_since = now;
		end_wait(p, t, now);
		activate(t, home, p->scx.weight);
		if (config.loan == LOAN_IDLE && critical_active)
			tell_fence(true, now);
	} else if (t->active_tier != home) {
		/* The tier map was changed, which tells nobody. */
		deactivate(p, t, now);
		activate(t, home, p->scx.weight);
	}
	t->tier = tier_of(p, t, home, now);
	/* Whoever finds a CPU idle is in no queue, and is compared with those that are when its turn ends. */
	if (wakes || t->vtime_tier != t->tier)
		queue_position(p, t, now);
	return t->tier;
}

/* It is runnable no longer, or no longer ours. */
static void leave_tier(struct task_struct *p, struct task_state *t, u64 now)
{
	deactivate(p, t, now);
	if (config.loan == LOAN_IDLE && !critical_active)
		tell_fence(false, 0);
}

/* How often this CPU serves a tier of which `nr_queued` tasks are queued for it, at the least. */
static __always_inline u64 starvation_period(struct cpu_state *c, u32 tier, u32 nr_queued)
{
	/* Together the CPUs are fast enough, unless the tasks are bound to a few of them. */
	u64 period = ROUND * (is_late(c, tier) ? 1 : config.nr_online) / nr_queued;

	return period < starvation[tier].period ? period : starvation[tier].period;
}

/* The tier that is to have a starvation turn of *turn ns on this CPU now; NR_TIERS: none. */
static u32 overdue_tier(s32 cpu, u32 prev_tier, u64 now, u64 *turn)
{
	struct cpu_state *c = cpu_state(cpu);

	for (u32 tier = TIER_CRITICAL; tier < NR_TIERS; tier++) {
		u32 nr_queued = within_reach(tier, cpu) + c->pinned[tier];

		if (!nr_queued) {
			c->served_at[tier] = now;
			continue;
		}
		/* It is next anyway. */
		if (tier == TIER_CRITICAL && prev_tier != TIER_SYSTEM && !within_reach(TIER_SYSTEM, cpu) && !c->pinned[TIER_SYSTEM])
			continue;
		s32 *to_end = asked[tier] > 0 ? &asked[tier] : &c->asked[tier];
		u64 period = *to_end > 0 ? ASKED_PERIOD : starvation_period(c, tier, nr_queued);

		if (now - c->served_at[tier] > period) {
			if (*to_end > 0)
				ordered_add(to_end, -1);
			u64 due = starvation[tier].turn * period / starvation[tier].period;

			*turn = due > LEAST_TURN ? due : LEAST_TURN;
			return tier;
		}
	}
	return NR_TIERS;
}

static int end_protected_turn(void *map, u32 *index, struct timer_slot *slot)
{
	u32 cpu = *index - TIMER_PROTECTED;

	if (!cpu_state(cpu)->protected)
		return 0;
	/* Started by a sibling, it expires there. */
	if (is_this_cpu(cpu) && ends_section(cpu_state(cpu), bpf_get_current_task_btf()))
		bpf_timer_start(&slot->timer, LEAST_TURN, BPF_F_TIMER_CPU_PIN);
	else
		scx_bpf_kick_cpu(cpu, KICK_PREEMPT);
	return 0;
}

/* A task begins a protected turn here, of so many ns. */
static void protect_turn(u32 cpu, u64 turn)
{
	if (!start_timer(TIMER_PROTECTED + cpu, turn, BPF_F_TIMER_CPU_PIN))
		scx_bpf_kick_cpu(cpu, KICK_PREEMPT);
}

#endif
