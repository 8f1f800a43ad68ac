/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Rounds through all that wait.
 *
 * Problem: of a task that waits nobody tells the scheduler anything. That it has waited for long, was asked to die, or
 * holds up others has to be looked for; and the look must not cost those who do not wait.
 *
 * Method: a round looks at all tasks that wait (waiting.bpf.h), then at each CPU. A timer looks at LOOK_AT of them, and at the
 * next ones a STEP later. It ends a step sooner if somebody is waiting for the CPU on which it expired: a timer keeps it from
 * choosing. A round that is through sooner begins anew LOOK_PERIOD after it began. What it has seen of each queue counts when
 * it is through.
 *
 * Limits: 3,200 tasks and CPUs are seen in each LOOK_PERIOD; with more a round takes longer, 0.3 s for 10,000. A critical task
 * that wakes up on the timer's CPU waits for one look. On a CPU for which somebody always waits a step is one look.
 */
#ifndef TEMPER_LOOK_BPF_H
#define TEMPER_LOOK_BPF_H

#include "throttle.bpf.h"
#include "watchdog.bpf.h"

#define STEP (MSEC / 8)
enum { LOOK_AT = 4 };

static u64 round_began;
static u32 last_task; /* at whom the round has looked last; 0: at nobody yet, or at all */
static u32 next_cpu;  /* at which it looks next; 0: not yet at any */

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
		bpf_rcu_read_lock(); /* age() goes through a queue */
		if (kind == QUEUED_THROTTLED) {
			may_go = may_go_now(p, t, mark - QUEUED_THROTTLED, now);
			if (!may_go && in_section(p) && !waits_in_call(p, t))
				boost_section(p, t);
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
	return may_go ? unthrottle_holder(pid, mark - QUEUED_THROTTLED) : lost;
}

static __always_inline void end_look(struct seen *s, u64 *longest, s32 *to_end)
{
	*longest = s->longest;
	*to_end = s->asked;
	__builtin_memset(s, 0, sizeof(*s));
}

static __always_inline void end_look_at_queues(u64 now)
{
	last_round = now - round_began > LOOK_PERIOD ? now - round_began : LOOK_PERIOD;
	for (u32 tier = 0; tier < NR_TIERS; tier++)
		end_look(&seeing[tier], &longest_wait[tier], &asked[tier]);
}

static __always_inline void end_look_at_queues_of(s32 cpu, u64 now)
{
	struct cpu_state *c = cpu_state(cpu);

	for (u32 tier = 0; tier < NR_TIERS; tier++)
		end_look(&c->seeing[tier], &c->longest_wait[tier], &c->asked[tier]);
	repeat_donation(cpu);
	see_local_queue(cpu, now);
}

/* Look at the next task or, behind the last, the next CPU. False: there is none, and the round is over. */
static __always_inline bool look_at_next(u64 now)
{
	if (next_cpu == 0) {
		last_task = next_waiting(last_task + 1);
		if (last_task) {
			if (look_at(last_task, now))
				claim_for(last_task);
			return true;
		}
		end_look_at_queues(now);
	}
	if (next_cpu < config.nr_cpus) {
		end_look_at_queues_of(next_cpu++, now);
		return true;
	}
	next_cpu = 0;
	tell_waits();
	return false;
}

/* Does somebody wait for this CPU, on which the timer keeps it from choosing? */
static __always_inline bool keeps_somebody_waiting(s32 cpu)
{
	return *(volatile u64 *)&cpu_state(cpu)->claimed_at || scx_bpf_dsq_nr_queued(DSQ_LOCAL_ON | cpu) > 0;
}

static int look_at_waiting(void *map, u32 *index, struct timer_slot *slot)
{
	u64 now = clock_ns(), next = STEP;
	u32 i;

	if (left)
		return 0;
	if (!last_task && !next_cpu)
		round_began = now;
	bpf_for(i, 0, LOOK_AT) {
		if (!look_at_next(now)) {
			u64 took = now - round_began;

			next = took + STEP < LOOK_PERIOD && !unnamed_awaited() ? LOOK_PERIOD - took : STEP;
			next_round = now + next;
			break;
		}
		if (keeps_somebody_waiting(bpf_get_smp_processor_id()))
			break;
	}
	bpf_timer_start(&slot->timer, next, 0);
	return 0;
}

#endif
