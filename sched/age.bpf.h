/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Nothing starves behind others of its own tier.
 *
 * Problem: in a tier the order is by virtual time. A task of weight 1 beside one of weight
 * 10000 is due 3 ms in 30 s, and less while its tier has starvation turns only; by then the kernel has
 * ejected the scheduler. A limit on how far ahead a virtual time may be does not help: it
 * would have to suit the slowest that a tier may get, and break the shares of all others.
 *
 * Method: all that wait are looked at in rounds (look.bpf.h). A task that has waited for longer
 * than its tier's patience goes to the front of its queue, to where it would be had it
 * just woken up; what it was behind its share is forgiven. So many in a round that all of a queue have had
 * their turn in ROUND, those first that have waited for three quarters of the longest wait that
 * the round before has seen, or more. Whoever has been asked to die, stop or freeze goes before
 * all others at once: waking it up is no event for a scheduler, since it is runnable already.
 * Whoever holds up others is boosted (inheritance.bpf.h).
 *
 * Limits: a task gets a slice in each `patience`, be its share smaller.
 */
#ifndef TEMPER_AGE_BPF_H
#define TEMPER_AGE_BPF_H

#include "inheritance.bpf.h"
#include "timer.bpf.h"

#define LOOK_PERIOD (100 * MSEC)
#define ROUND (8000 * MSEC)
#define STOP_SIGNAL (1ULL << (SIGSTOP - 1))
#define TIME_TO_STOP (5 * MSEC)
#define BEFORE_ALL (1000000 * MSEC) /* of virtual time: far before the front of a queue */

static const u64 patience[NR_TIERS] = { 1000 * MSEC, 1000 * MSEC, 1000 * MSEC, 5000 * MSEC };

u64 longest_wait[NR_TIERS]; /* in the shared queue, as of the last round; were it static, clang would split it */
s32 asked[NR_TIERS]; /* tasks there that are to end, as of the last round; progress.bpf.h counts them off */
static struct seen seeing[NR_TIERS];
static u64 last_round = LOOK_PERIOD; /* how long it took, or LOOK_PERIOD */

/* Does anybody whom this CPU may serve wait for longer than the order of things explains? */
static __always_inline bool is_late(struct cpu_state *c, u32 tier)
{
	return longest_wait[tier] > 2 * patience[tier] || c->longest_wait[tier] > 2 * patience[tier];
}

/*
 * A whole process was asked to stop. The kernel has told one of its threads, and not us which: that one stops them all as
 * soon as it runs. Another that runs on in user mode would be a duty without an end, ahead of the one that it waits for.
 */
static __always_inline bool may_stop_its_process(struct task_struct *p, struct task_state *t, struct signal_struct *process)
{
	if (!(process->shared_pending.signal.sig[0] & STOP_SIGNAL)) {
		t->stop_asked_exec = 0;
		return false;
	}
	if (!t->stop_asked_exec)
		t->stop_asked_exec = p->se.sum_exec_runtime + 1;
	return process->nr_threads == 1 || p->se.sum_exec_runtime - t->stop_asked_exec + 1 < TIME_TO_STOP;
}

/* To die, to stop, to freeze or to be traced: somebody waits for it to get that far, as far as its CPU's token bucket goes. */
static __always_inline bool asked_to_end(struct task_struct *p, struct task_state *t)
{
	struct signal_struct *process = untrusted(p)->signal;

	return ((process->flags & SIGNAL_GROUP_EXIT) || (p->jobctl & JOBCTL_ASKED) ||
		(p->pending.signal.sig[0] & STOP_SIGNAL) || may_stop_its_process(p, t, process)) &&
	       may_end_first(p);
}

/* What the round that is under way has seen of the queue in which a task waits. */
static __always_inline struct seen *seen_beside(struct task_state *t, u32 tier)
{
	return queued_kind(t->queued) == QUEUED_PINNED ? &cpu_state(t->queued_cpu)->seeing[tier % NR_TIERS] : &seeing[tier % NR_TIERS];
}

/*
 * Move a task within its queue. On the move it is in no queue, and a CPU that looks just then does not find it. The arrivals
 * make that CPU look again, whether it began to look before or after the first.
 */
static __noinline bool move_forward(struct task_struct *p, u32 tier, u64 queue, u64 to)
{
	struct bpf_iter_scx_dsq it;
	bool moved = false;

	if (tier >= NR_TIERS)
		return false;
	if (bpf_iter_scx_dsq_new(&it, queue, 0) == 0) {
		ordered_add(&arrivals[tier], 1);
		moved = dsq_move_vtime(&it, p, queue, to);
		ordered_add(&arrivals[tier], 1);
	}
	bpf_iter_scx_dsq_destroy(&it);
	return moved;
}

/* A look at one that waits for a CPU. */
static __always_inline void age(struct task_struct *p, struct task_state *t, u64 now)
{
	bool pinned = queued_kind(t->queued) == QUEUED_PINNED;
	s64 waited = now - t->runnable_at;
	u64 longest, long_enough;
	u32 tier = t->tier, cpu = t->queued_cpu;
	struct seen *s = seen_beside(t, tier);
	u64 queue, to;

	if (tier >= NR_TIERS)
		return;
	if (waited > (s64)s->longest)
		s->longest = waited;
	boost_queued(p, t, waited);
	to = tier_clock[tier] - slice_ns[tier];
	queue = pinned ? pinned_queue(cpu, tier) : shared_queue(tier);
	if (asked_to_end(p, t)) {
		s->asked++;
		to -= BEFORE_ALL;
	} else {
		longest = pinned ? cpu_state(cpu)->longest_wait[tier % NR_TIERS] : longest_wait[tier];
		long_enough = longest / 4 * 3 > patience[tier] ? longest / 4 * 3 : patience[tier];
		if (waited < (s64)long_enough || (s64)(p->scx.dsq_vtime - to) <= 0 ||
		    s->moved > scx_bpf_dsq_nr_queued(queue) * last_round / ROUND)
			return;
		s->moved++;
	}
	if ((s64)(p->scx.dsq_vtime - to) > 0 && move_forward(p, tier, queue, to))
		COUNT_TIER(tier, aged);
}

#endif
