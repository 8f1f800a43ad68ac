/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A CPU takes the task of a tier that is due next, or one that is boosted.
 *
 * Problem: a tier's tasks are in two queues, that of the CPU and the shared one, and the kernel orders neither against the
 * other. A task that is boosted (inheritance.bpf.h) may stand anywhere in either, or be throttled (throttle.bpf.h).
 *
 * Method: where both have one, the virtual times of their first tasks decide. The shared queue is looked at only where this
 * CPU may find a task of its own (reach.bpf.h). A boosted task is moved out of its queue by itself, and unthrottled first
 * where it is to go beyond its limit.
 *
 * Limits: the first task of the shared queue may be one that this CPU may not run. Then it takes the next one there that it
 * may, though its own queue's may be due sooner.
 */
#ifndef TEMPER_TAKE_BPF_H
#define TEMPER_TAKE_BPF_H

#include "throttle.bpf.h"

/* Virtual time of the first task in a queue; false where it is empty. */
static __noinline bool head_vtime(u64 queue, u64 *vtime)
{
	struct bpf_iter_scx_dsq it;
	struct task_struct *p;
	bool found = false;

	if (bpf_iter_scx_dsq_new(&it, queue, 0) == 0) {
		p = bpf_iter_scx_dsq_next(&it);
		if (p) {
			*vtime = p->scx.dsq_vtime;
			found = true;
		}
	}
	bpf_iter_scx_dsq_destroy(&it);
	return found;
}

/* Take the first task of the tier's shared queue that this CPU may run. */
static __noinline bool take_shared(u32 tier, s32 cpu)
{
	struct cpu_state *c = cpu_state(cpu);

	if (tier >= NR_TIERS)
		return false;
	/* Without a look at the length, a failure would for a moment hide a task that is just being queued. */
	if (!scx_bpf_dsq_nr_queued(shared_queue(tier)))
		return false;
	begin_dequeue(c, tier);
	if (dsq_move_to_local(shared_queue(tier)))
		return true;
	end_dequeue(c);
	if ((s32)*(volatile u32 *)&queued[tier] <= scx_bpf_dsq_nr_queued(shared_queue(tier)))
		gave_up(tier, cpu);
	return false;
}

/* Take a task of a tier, from this CPU's queue or the shared one, whichever is due first. */
__noinline bool take(u32 tier, s32 cpu)
{
	u64 mine = pinned_queue(cpu, tier), shared = shared_queue(tier), a, b;
	bool has_mine, has_shared;

	if (tier >= NR_TIERS)
		return false;
	has_mine = cpu_state(cpu)->pinned[tier];
	has_shared = within_reach(tier, cpu);
	if (has_mine && has_shared && head_vtime(mine, &a) && head_vtime(shared, &b) && (s64)(b - a) < 0)
		return take_shared(tier, cpu) || dsq_move_to_local(mine);
	return (has_mine && dsq_move_to_local(mine)) || (has_shared && take_shared(tier, cpu));
}

/* Is a task of this tier that this CPU may take due before virtual time `vtime`? */
__noinline bool due_before(u64 vtime, u32 tier, s32 cpu)
{
	u64 head;

	if (tier >= NR_TIERS)
		return false;
	if (cpu_state(cpu)->pinned[tier] && head_vtime(pinned_queue(cpu, tier), &head) && (s64)(head - vtime) < 0)
		return true;
	return within_reach(tier, cpu) && head_vtime(shared_queue(tier), &head) && (s64)(head - vtime) < 0;
}

/* Move a task from the queue where it is, if it still is, to this CPU, which is choosing. */
static __noinline bool take_out(struct task_struct *p, u32 tier, bool pinned, s32 cpu)
{
	u64 queue = pinned ? pinned_queue(cpu, tier) : shared_queue(tier);
	struct cpu_state *c = cpu_state(cpu);
	struct bpf_iter_scx_dsq it;
	bool taken = false;

	/* Asked again here: whoever changes it after the iterator was made takes the task out of the queue, and it is not found. */
	if (bpf_iter_scx_dsq_new(&it, queue, 0) == 0 && (pinned || (may_run_on(p, cpu) && !p->migration_disabled))) {
		if (!pinned)
			begin_dequeue(c, tier);
		taken = dsq_move(&it, p, DSQ_LOCAL);
		if (!pinned && !taken)
			end_dequeue(c);
	}
	bpf_iter_scx_dsq_destroy(&it);
	return taken;
}

/* Take the task that is boosted here, or see to it that the CPU does which can. */
static __always_inline bool take_boosted(struct task_struct *p, struct task_state *t, s32 cpu)
{
	struct cpu_state *c = cpu_state(cpu);
	u32 tier = NR_TIERS, mark = t->queued;
	bool section = false, taken, pinned;

	if (mark >= QUEUED_THROTTLED && ((in_section(p) && !waits_in_call(p, t)) || boosted_beyond(p, t, mark - QUEUED_THROTTLED)))
		unthrottle_holder(p->pid, mark - QUEUED_THROTTLED);
	if (t->queued) {
		section = !is_boosted(p, t);
		if (!section || in_section(p) || may_own_unnamed(p))
			tier = t->tier;
	}
	if (tier >= NR_TIERS)
		return false;
	pinned = queued_kind(t->queued) == QUEUED_PINNED;
	if (pinned ? t->queued_cpu != cpu : !may_run_on(p, cpu)) {
		if (t->queued_cpu != cpu)
			boost_on(t->queued_cpu, p->pid, c->boost_tier);
		return false;
	}
	taken = take_out(p, tier, pinned, cpu);
	c->boosted_section = taken && section;
	if (c->boosted_section && may_own_unnamed(p))
		ask_to_tell(p);
	if (taken)
		COUNT_TIER(tier, boosted);
	return taken;
}

/* The task that is boosted on this CPU is to run. False: it does not. */
__noinline bool take_holder(s32 cpu)
{
	struct cpu_state *c = cpu_state(cpu);
	struct task_struct *p = bpf_task_from_pid(c->boost_pid);
	struct task_state *t = p ? task_state(p) : NULL;
	bool for_section = c->section_pid == c->boost_pid, taken = false;

	c->boost_pid = c->section_pid = 0;
	c->boosted_section = false;
	if (p && t)
		taken = take_boosted(p, t, cpu);
	if (p)
		bpf_task_release(p);
	/* It has run meanwhile, or is gone: the next may have its turn. */
	if (for_section && !taken)
		c->section_next = clock_ns();
	return taken;
}

#endif
