/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Nothing starves behind others of its own tier.
 *
 * Problem: in a tier the order is by virtual time. A task of weight 1 beside one of weight
 * 10000 is due 3 ms in 30 s, and less while its tier is on parole; by then the kernel has
 * ejected the scheduler. A limit on how far ahead a virtual time may be does not help: it
 * would have to suit the slowest that a tier may get, and break the shares of all others.
 *
 * Method: a timer looks through the queues each LOOK_PERIOD. A task that has waited for longer
 * than its tier's patience goes to the front of its queue, to where it would be had it
 * just woken up; what it owed is forgiven. So many at a time that all of a queue have had
 * their turn in ROUND, those first that have waited for three quarters of the longest wait that
 * the look before has seen, or more. Whoever has been asked to die, stop or freeze goes before
 * all others at once: waking it up is no event for a scheduler, since it is runnable already.
 * Whoever holds up others (owner.bpf.h) is lent its CPU.
 *
 * Limits: a task gets a slice in each `patience`, be its share smaller. A look takes time
 * for each task that is queued, in a soft interrupt of one CPU.
 */
#ifndef TEMPER_AGE_BPF_H
#define TEMPER_AGE_BPF_H

#include "owner.bpf.h"
#include "timer.bpf.h"

#define LOOK_PERIOD (100 * MSEC)
#define ROUND (8000 * MSEC)
#define STOP_SIGNAL (1ULL << (SIGSTOP - 1))
#define TIME_TO_STOP (5 * MSEC)
#define BEFORE_ALL (1000000 * MSEC) /* of virtual time: far before the front of a queue */

static const u64 patience[NR_TIERS] = { 1000 * MSEC, 1000 * MSEC, 1000 * MSEC, 5000 * MSEC };

u64 longest_wait[NR_TIERS]; /* in the shared queue, as of the last look; were it static, clang would split it */
s32 asked[NR_TIERS]; /* tasks there that are to end, as of the last look; progress.bpf.h counts them off */
static s32 asked_seen;

/* Does anybody whom this CPU may serve wait for longer than the order of things explains? */
static __always_inline bool is_late(struct cpu_state *c, u32 tier)
{
	return longest_wait[tier] > 2 * patience[tier] || c->longest_wait[tier] > 2 * patience[tier];
}

/*
 * A whole process was asked to stop. The kernel has told one of its threads, and not us which: that one stops them all as
 * soon as it runs. Another that runs on in user mode would be a duty without an end, ahead of the one that it waits for.
 */
static __always_inline bool may_stop_its_process(struct task_struct *p, struct task_state *t)
{
	if (!(p->signal->shared_pending.signal.sig[0] & STOP_SIGNAL)) {
		t->stop_asked_exec = 0;
		return false;
	}
	if (!t->stop_asked_exec)
		t->stop_asked_exec = p->se.sum_exec_runtime + 1;
	return p->signal->nr_threads == 1 || p->se.sum_exec_runtime - t->stop_asked_exec + 1 < TIME_TO_STOP;
}

/* To die, to stop, to freeze or to be traced: somebody waits for it to get that far. */
static __always_inline bool asked_to_end(struct task_struct *p, struct task_state *t)
{
	return (p->signal->flags & SIGNAL_GROUP_EXIT) || (p->jobctl & JOBCTL_ASKED) ||
	       (p->pending.signal.sig[0] & STOP_SIGNAL) || may_stop_its_process(p, t);
}

/*
 * One look at a queue: returns the longest wait seen, given that of the last look. Not static,
 * so that the verifier looks at it once, and not for every state of the loops around it.
 */
__noinline u64 age_queue(u64 queue, u32 tier, u64 longest, u64 now)
{
	struct bpf_iter_scx_dsq it;
	struct task_struct *p;
	u64 seen = 0;

	if (tier >= NR_TIERS)
		return 0;
	u64 front = tier_clock[tier] - slice_ns[tier];
	u64 may_move = 1 + scx_bpf_dsq_nr_queued(queue) * LOOK_PERIOD / ROUND;
	s64 long_enough = longest / 4 * 3 > patience[tier] ? longest / 4 * 3 : patience[tier];

	bpf_rcu_read_lock();
	if (bpf_iter_scx_dsq_new(&it, queue, DSQ_ITER_REV) == 0) {
		while ((p = bpf_iter_scx_dsq_next(&it))) {
			struct task_state *t = task_state(p);
			s64 waited = t ? now - t->runnable_at : 0;

			if (waited > (s64)seen)
				seen = waited;
			if (t)
				lend_to_queued(p->pid, waited, t->lent_lock);
			u64 to = front;

			if (t && asked_to_end(p, t)) {
				asked_seen++;
				to -= BEFORE_ALL;
			}
			if ((s64)(p->scx.dsq_vtime - to) <= 0)
				continue;
			if (to == front) {
				if (!may_move || waited < long_enough)
					continue;
				may_move--;
			}
			/*
			 * On the move it is in no queue, and a CPU that looks just then does not find it. The
			 * arrivals make that CPU look again, whether it began to look before or after the first.
			 */
			ordered_add(&arrivals[tier], 1);
			if (dsq_move_vtime(&it, p, queue, to))
				COUNT_TIER(tier, aged);
			ordered_add(&arrivals[tier], 1);
		}
	}
	bpf_iter_scx_dsq_destroy(&it);
	bpf_rcu_read_unlock();
	return seen;
}

static __always_inline u64 look_at(u64 queue, u32 tier, u32 waiting, u64 longest, s32 *to_end, u64 now)
{
	asked_seen = 0;
	longest = waiting ? age_queue(queue, tier, longest, now) : 0;
	*to_end = asked_seen;
	return longest;
}

static int look_for_aged(void *map, u32 *index, struct timer_slot *slot)
{
	u64 now = clock_ns();
	u32 i;

	if (left)
		return 0;

	for (u32 tier = 0; tier < NR_TIERS; tier++)
		longest_wait[tier] = look_at(shared_queue(tier), tier, queued[tier], longest_wait[tier], &asked[tier], now);
	bpf_for(i, 0, config.nr_cpus * NR_TIERS) {
		u32 cpu = i / NR_TIERS, tier = i % NR_TIERS;
		struct cpu_state *c = cpu_state(cpu);
		u64 *longest = &c->longest_wait[tier];

		if (tier == 0)
			repeat_loan(cpu);
		*longest = look_at(pinned_queue(cpu, tier), tier, c->pinned[tier], *longest, &c->asked[tier], now);
	}
	bpf_timer_start(&slot->timer, LOOK_PERIOD, 0);
	return 0;
}

#endif
