/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Whoever may have a lock that the kernel names no holders of has a turn, while somebody waits for it.
 *
 * Problem: any number of tasks have an rwsem to read, a per-CPU rwsem or a semaphore, and nothing says which. Readers that are
 * background on a full node, or have used up their limit, keep a critical task from writing for seconds: 200 of them that read
 * its command line, its mmap(). When a writer gives an rwsem back, the kernel gives it to all readers that wait, while
 * they still sleep. Each has to run to give it back.
 *
 * Method: who waits for such a lock notes that in a table, and has the next round of looks (look.bpf.h) begin soon. The round
 * marks two kinds of tasks as holders (owner.bpf.h), of lower tiers or held by a limit that does not bind who waits:
 * those that last waited for this lock, which are the readers that it was given to; and suspects, which were interrupted in the
 * kernel, or woke up there. Who was interrupted in user mode has no lock (see_switch()). A mark lasts for PICK_UP, or
 * SUSPECT_TURN of running.
 *
 * An example: 200 processes with a limit of 0.02 CPUs read under a lock, 40 have used up the limit in the middle of that, and
 * critical waits to write. Within 2 ms the first of them are let go of, three in a millisecond on three CPUs, and critical
 * has the lock after some 15 ms. From then on the others wait for the lock, not for their limit: when critical gives it back
 * each is known to have it.
 *
 * Limits: suspects have a SUSPECT_SHARE of the node while somebody waits, and 10,000 threads that do other things in the kernel
 * are suspects, too: a holder among them is found late. Two that wait in each tier are looked for at a time, by
 * turns. A lock whose waiters the kernel does not announce (bits, a page's lock) is not known.
 */
#ifndef TEMPER_SUSPECT_BPF_H
#define TEMPER_SUSPECT_BPF_H

#include "owner.bpf.h"
#include "timer.bpf.h"

#define SEEK_PATIENCE (3 * MSEC) /* most waits are over before, and whoever is let go of comes back to read again */
#define SUSPECT_TURN (MSEC / 16)
enum { SUSPECT_SHARE = 4 }; /* one in so many CPUs */
enum { SOUGHT = 2 * TIER_BACKGROUND };

/* For whom holders are sought, two of each tier. Its `lock` is written last, and one that does not fit the rest marks nobody: owes(). */
static struct loan sought[SOUGHT];
static u64 sought_since[SOUGHT];
static u32 seeking;	  /* any of them is in use */
static u64 next_suspect; /* not before that moment is another one marked */
static u64 next_look_at; /* look_at_waiting(): when it looks next */

static __always_inline struct loan *sought_at(u32 i)
{
	return &sought[i < SOUGHT ? i : 0];
}

static __always_inline bool is_same(struct loan *a, struct loan *b)
{
	return a->lock == b->lock && a->lender == b->lender && a->cgroup == b->cgroup;
}

/* It waits for a lock whose holders have no names. Partner: look_later(). */
__noinline bool seek(struct loan *loan)
{
	static u32 turn;
	u64 soon = clock_ns() + SEEK_PATIENCE;
	struct loan *s;
	u32 i;

	if (!loan || loan->tier >= TIER_BACKGROUND)
		return false;
	i = 2 * loan->tier;
	if (is_same(sought_at(i), loan) || is_same(sought_at(i + 1), loan))
		return false;
	i += turn++ % 2;
	s = sought_at(i);
	sought_since[i % SOUGHT] = soon - SEEK_PATIENCE;
	s->lender = loan->lender;
	s->cgroup = loan->cgroup;
	s->tier = loan->tier;
	ordered_swap(&s->lock, loan->lock);
	ordered_swap(&seeking, 1);
	if ((s64)(next_look_at - soon) > 0) {
		next_look_at = soon;
		start_timer(TIMER_LOOK, SEEK_PATIENCE, 0);
	}
	return true;
}

/* The waits that are over are forgotten. Partner: seek(), which writes before it says so. */
static __noinline void forget_sought(void)
{
	bool more = false;
	u32 i;

	ordered_swap(&seeking, 0);
	bpf_for(i, 0, SOUGHT) {
		struct loan *s = sought_at(i);
		u64 lock = *(volatile u64 *)&s->lock;

		if (lock && still_waits(s->lender, lock))
			more = true;
		else if (lock)
			ordered_compare_swap(&s->lock, lock, 0);
	}
	if (more)
		seeking = 1;
}

/* May it have this lock? Each that is not known to have it takes of the suspects' share. */
static __always_inline bool may_have(struct task_state *t, u64 lock, u64 now)
{
	if (t->wanted_lock == lock)
		return true;
	if (t->in_user || (s64)(now - next_suspect) < 0)
		return false;
	next_suspect = now + SUSPECT_TURN * SUSPECT_SHARE / config.nr_online;
	return true;
}

/* Would this task wait, for its limit or behind higher tiers, where the one who waits for it would not? */
static __always_inline bool would_wait(struct task_state *t, u32 as, struct loan *loan)
{
	if (as >= QUEUED_HELD)
		return !is_within(loan->cgroup, as - QUEUED_HELD);
	u32 by = limit_of(t->cgroup);

	return t->tier > loan->tier || (by != NO_SLOT && !is_within(loan->cgroup, by));
}

/* Does this task, which wakes up or was found to wait `as` (enum queued_as), hold up anybody? */
static __noinline void suspect(struct task_struct *p, struct task_state *t, u32 as, u64 now)
{
	u32 i;

	bpf_for(i, 0, SOUGHT) {
		struct loan *s = sought_at(i), loan = *s;

		if (!loan.lock || now - sought_since[i % SOUGHT] < SEEK_PATIENCE || loan.lender == p->pid || (!as && t->wanted_lock != loan.lock))
			continue;
		if (!would_wait(t, as, &loan) || !still_waits(loan.lender, loan.lock) || !may_have(t, loan.lock, now))
			continue;
		mark(p, t, loan.lock, &loan, now + PICK_UP);
		return;
	}
}

/* Was it marked for what it may have, or was woken to take? */
static __always_inline bool is_suspected(struct task_state *t, u64 now)
{
	return (s64)(t->woken_until - now) > 0 || (s64)(t->excused_until - now) > 0;
}

/* It runs, for so long. Known holders, and who has a lock by then, go on. */
static __always_inline void bound_suspicion(struct task_state *t, u64 now)
{
	if ((s64)(t->woken_until - now) > (s64)SUSPECT_TURN)
		t->woken_until = now + SUSPECT_TURN;
	if ((s64)(t->excused_until - now) > (s64)SUSPECT_TURN)
		t->excused_until = now + SUSPECT_TURN;
}

#endif
