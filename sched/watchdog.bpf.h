/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How near is the kernel's watchdog?
 *
 * Problem: the kernel throws the scheduler out when a task of ours has been runnable for TEMPER_WATCHDOG_MS without running.
 * What is counted when a task runs at last comes too late for one that does not.
 *
 * Method: a wait has one cause (enum temper_wait). For each, the longest that has ended is counted as the task runs, and the
 * longest that is under way is found by the rounds of looks at all that waits (look.bpf.h), which write it to map "waits" as
 * they end. They count it, too: by the time that it ends its cause may be gone. A task that was put on a CPU before a
 * real-time task took it is in no queue of ours. For it, the CPU tells.
 *
 * A wait lasts from when the task last ran, or woke up, as for the kernel: to be moved to another cgroup does not end it.
 *
 * Limits: waits of less than LONG_WAIT are left out. A real-time task that is RT-throttled is one of ours for a moment: who
 * waits for it and is looked at, or runs, just then counts as waiting for the CPU. What is under way is as old as a round:
 * 100 ms for up to 3,200 tasks that wait, 0.3 s for 10,000. Who waited for a limit and then for a CPU counts as having waited
 * for the limit.
 */
#ifndef TEMPER_WATCHDOG_BPF_H
#define TEMPER_WATCHDOG_BPF_H

#include "stats.bpf.h"

#define LONG_WAIT (10 * MSEC)

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct temper_waits);
} waits SEC(".maps");

static struct temper_waits seen_waits; /* in the round that is under way */

/* Since when has a task of a class above had this CPU? 0: it has not. */
static __always_inline u64 taken_since(struct cpu_state *c)
{
	return c->busy && !c->running ? c->free_until : 0;
}

static __always_inline u32 cause_of_wait(u32 kind, bool was_throttled, s32 cpu, u64 waited, u64 now)
{
	u64 since = kind == QUEUED_SHARED ? 0 : taken_since(cpu_state(cpu));

	if (kind == QUEUED_THROTTLED || kind == QUEUED_TAKEN || was_throttled)
		return WAIT_LIMIT;
	if (since && now - since > waited / 2)
		return WAIT_REAL_TIME;
	return kind == QUEUED_PINNED ? WAIT_ONE_CPU : WAIT_ANY_CPU;
}

/* A task that was queued as `kind` runs now. Global, so that the verifier looks at it once, by itself. */
__noinline u64 end_long_wait(u32 kind, bool was_throttled, s32 cpu, u64 since, u64 now)
{
	u64 waited = now - since;
	u32 cause = cause_of_wait(kind, was_throttled, cpu, waited, now);
	struct temper_stats *s = get_stats();

	if (s && cause < NR_WAITS && waited > s->longest_wait_ns[cause])
		s->longest_wait_ns[cause] = waited;
	return waited;
}

static __always_inline void see_wait(u32 cause, s32 tid, u64 waited)
{
	if (cause >= NR_WAITS || waited <= seen_waits.under_way_ns[cause])
		return;
	seen_waits.under_way_ns[cause] = waited;
	seen_waits.tid[cause] = tid;
}

static __noinline void see_longer_wait(struct task_struct *p, struct task_state *t, u32 kind, u64 now)
{
	u64 since = *(volatile u64 *)&t->waits_since; /* 0: it begins to run just now */
	s64 waited = now - since;

	if (since && waited > (s64)LONG_WAIT)
		see_wait(cause_of_wait(kind, t->throttled_at, t->queued_cpu, waited, now), p->pid, waited);
}

/* A look at one that waits. Of thousands in the shared queues nearly all wait for shorter than one that was seen: they cost
 * little. */
static __always_inline void see_task_wait(struct task_struct *p, struct task_state *t, u32 kind, u64 now)
{
	if (kind == QUEUED_SHARED && !t->throttled_at && now - t->waits_since <= seen_waits.under_way_ns[WAIT_ANY_CPU])
		return;
	see_longer_wait(p, t, kind, now);
}

/* Once in a round. */
static __always_inline void see_local_queue(s32 cpu, u64 now)
{
	u64 since = taken_since(cpu_state(cpu));

	if (since && (s64)(now - since) > (s64)LONG_WAIT && scx_bpf_dsq_nr_queued(DSQ_LOCAL_ON | cpu) > 0)
		see_wait(WAIT_REAL_TIME, 0, now - since);
}

static __always_inline void tell_waits(void)
{
	u32 zero = 0;
	struct temper_waits *w = bpf_map_lookup_elem(&waits, &zero);
	struct temper_stats *s = get_stats();

	for (u32 cause = 0; cause < NR_WAITS; cause++) {
		if (s && seen_waits.under_way_ns[cause] > s->longest_wait_ns[cause])
			s->longest_wait_ns[cause] = seen_waits.under_way_ns[cause];
	}
	if (w)
		*w = seen_waits;
	__builtin_memset(&seen_waits, 0, sizeof(seen_waits));
}

#endif
