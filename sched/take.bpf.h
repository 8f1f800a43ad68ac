/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A CPU takes the task of a tier that is due next.
 *
 * Problem: a tier's tasks are in two queues, that of the CPU and the shared one, and the kernel orders neither against the
 * other.
 *
 * Method: where both have one, the virtual times of their first tasks decide. The shared queue is looked at only where this
 * CPU may find a task of its own (reach.bpf.h).
 *
 * Limits: the first task of the shared queue may be one that this CPU may not run. Then it takes the next one there that it
 * may, though its own queue's may be due sooner.
 */
#ifndef TEMPER_TAKE_BPF_H
#define TEMPER_TAKE_BPF_H

#include "gap.bpf.h"

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

#endif
