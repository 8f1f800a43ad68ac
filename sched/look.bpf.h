/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Rounds through all that wait.
 *
 * Problem: of a task that waits nobody tells the scheduler anything. That it has waited for long, was asked to die, or
 * holds up others has to be looked for; and the look must not cost those who do not wait.
 *
 * Method: a timer looks at LOOK_AT tasks (waiting.bpf.h), and at the next ones a STEP later. A round that is through
 * sooner begins anew LOOK_PERIOD after it began. What it has seen of each queue counts when it is through.
 *
 * Limits: 3,200 tasks are seen in each LOOK_PERIOD; with more a round takes longer, 0.3 s for 10,000. A step looks at
 * LOOK_AT tasks, and once a round at each CPU.
 */
#ifndef TEMPER_LOOK_BPF_H
#define TEMPER_LOOK_BPF_H

#include "pace.bpf.h"
#include "watchdog.bpf.h"

#define STEP (MSEC / 4)
enum { LOOK_AT = 8 };

/* Its mark is taken away if it waits no longer. Partner: mark_waiting(). */
static __noinline void forget(s32 pid)
{
	struct task_struct *p;
	struct task_state *t;

	unmark(pid);
	p = bpf_task_from_pid(pid);
	if (!p)
		return;
	t = task_state(p);
	if (t && *(volatile u32 *)&t->queued)
		mark_waiting(pid);
	bpf_task_release(p);
}

/* True: it wants a CPU. Global, so that the verifier looks at it once, by itself. */
__noinline bool look_at(s32 pid, u64 now)
{
	struct task_struct *p = bpf_task_from_pid(pid);
	struct task_state *t = p ? task_state(p) : NULL;
	u32 mark = t ? t->queued : NOT_QUEUED, kind = queued_kind(mark);
	bool may_go = false, lost = false;

	if (p && t) {
		bpf_rcu_read_lock(); /* its mask of CPUs is read */
		if (kind == QUEUED_HELD) {
			may_go = may_go_now(p, t, mark - QUEUED_HELD, now);
			if (!may_go && in_section(p))
				lend_to_section(p, t);
		} else if (kind == QUEUED_SHARED || kind == QUEUED_PINNED) {
			age(p, t, now);
		}
		if (mark)
			see_task_wait(p, t, kind, now);
		if (kind == QUEUED_SHARED)
			lost = invite(p, queued_tier(mark));
		bpf_rcu_read_unlock();
	}
	if (p)
		bpf_task_release(p);
	if (kind == NOT_QUEUED)
		forget(pid);
	return may_go ? let_go_holder(pid, mark - QUEUED_HELD) : lost;
}

static __always_inline void end_look(struct seen *s, u64 *longest, s32 *to_end)
{
	*longest = s->longest;
	*to_end = s->asked;
	__builtin_memset(s, 0, sizeof(*s));
}

static __always_inline void end_round(u64 took, u64 now)
{
	u32 i;

	last_round = took > LOOK_PERIOD ? took : LOOK_PERIOD;
	for (u32 tier = 0; tier < NR_TIERS; tier++)
		end_look(&seeing[tier], &longest_wait[tier], &asked[tier]);
	bpf_for(i, 0, config.nr_cpus * NR_TIERS) {
		struct cpu_state *c = cpu_state(i / NR_TIERS);
		u32 tier = i % NR_TIERS;

		end_look(&c->seeing[tier], &c->longest_wait[tier], &c->asked[tier]);
		if (tier == 0) {
			repeat_loan(i / NR_TIERS);
			see_local_queue(i / NR_TIERS, now);
		}
	}
	tell_waits();
}

static int look_at_waiting(void *map, u32 *index, struct timer_slot *slot)
{
	static u64 began;
	static u32 last; /* at whom this round has looked; 0: it begins */
	u64 now = clock_ns(), next = STEP;
	u32 i;

	if (left)
		return 0;
	if (!last)
		began = now;
	bpf_for(i, 0, LOOK_AT) {
		last = next_waiting(last + 1);
		if (!last)
			break;
		if (look_at(last, now))
			claim_for(last);
	}
	if (!last) {
		u64 took = now - began;

		end_round(took, now);
		next = took + STEP < LOOK_PERIOD ? LOOK_PERIOD - took : STEP;
	}
	bpf_timer_start(&slot->timer, next, 0);
	return 0;
}

#endif
