/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Who may have the lock that somebody waits for.
 *
 * Problem: any number of tasks have an rwsem to read, and the kernel names none of them; of one per CPU it names nobody. Who
 * was interrupted there, or was given the lock while he slept, waits for a CPU as his tier does, and keeps others waiting for
 * as long.
 *
 * Method: while somebody above background waits for such a lock, whoever was interrupted in the kernel is suspected of having
 * it. That is a section (inheritance.bpf.h): he is boosted to end it, and all such boosts together have a 32nd of each CPU. His
 * turn ends as he leaves the kernel, or waits for the lock himself. Before 6.18 nobody says that he leaves (leave.bpf.h): there
 * a turn is longer, and boosts are rarer. Rounds of looks find the suspects. They follow each other without a
 * pause meanwhile, and the first begins as the wait does, once in HURRY_PERIOD.
 *
 * Limits: whoever sleeps in the kernel, for anything, and is woken is suspected. Of several locks one is known, and the next as
 * soon as a round comes by its waiter. Where the saved registers do not say what was interrupted (leave.bpf.h), threads of
 * the kernel alone are suspected. Who is throttled by a limit is not.
 */
#ifndef TEMPER_UNNAMED_BPF_H
#define TEMPER_UNNAMED_BPF_H

#include "leave.bpf.h"

#define HURRY_PERIOD (10 * MSEC) /* a round begins sooner than it would, for somebody's wait, once in so long at most */

/* In a task's state a lock is its address; what it is is told by bits that no address has. A mutex has none of them. */
enum { IS_RWSEM = 1, IS_PERCPU = 2 /* an rwsem per CPU, be it read or written */, LOCK_KINDS = IS_RWSEM | IS_PERCPU };
enum { RWSEM_READER_OWNED = 1, OWNER_FLAGS = 7 };

/* The last that was seen to wait for such a lock, and the lock: await_unnamed() of any CPU. 0: nobody. */
static s32 unnamed_waiter;
static u64 unnamed_lock;

static u64 next_round; /* when the next round of looks begins; where none is awaited, when the last one did */
static u64 hurried_to; /* of those, the last that was made to begin sooner */

/* A task and flags. Once all readers have given the lock back, the name of the last one stays. */
static __always_inline u64 owner_of_rwsem(u64 lock)
{
	return BPF_CORE_READ((struct rw_semaphore *)(lock & ~(u64)LOCK_KINDS), owner.counter);
}

/* Has it anybody whom the kernel does not name? */
static __always_inline bool has_unnamed_owners(u64 lock)
{
	return lock & IS_PERCPU || (lock & IS_RWSEM && owner_of_rwsem(lock) & RWSEM_READER_OWNED);
}

__noinline bool still_waits(s32 pid, u64 lock)
{
	struct task_struct *p = bpf_task_from_pid(pid);
	struct task_state *t;
	bool still;

	if (!p)
		return false;
	t = task_state(p);
	still = t && t->wanted_lock == lock;
	bpf_task_release(p);
	return still;
}

/* Of a pair that another CPU is just changing nobody waits. It is told anew by the next round: repeat_donation(). */
static __always_inline bool unnamed_awaited(void)
{
	s32 waiter = *(volatile s32 *)&unnamed_waiter;

	return waiter && still_waits(waiter, *(volatile u64 *)&unnamed_lock);
}

/* A task waits for a lock. If somebody unnamed has it, a round is to begin, unless one is under way. */
static __always_inline void await_unnamed(s32 waiter, u64 lock, u64 now)
{
	u64 at;

	if (!has_unnamed_owners(lock))
		return;
	unnamed_waiter = waiter;
	unnamed_lock = lock;
	at = hurried_to + HURRY_PERIOD;
	if ((s64)(at - now) < 0)
		at = now;
	if ((s64)(next_round - at) <= 0)
		return;
	next_round = hurried_to = at;
	start_timer(TIMER_LOOK, at - now, 0);
}

/* Is this task, which does not run, or does in the timer's interrupt, suspected? */
static __always_inline bool may_own_unnamed(struct task_struct *p)
{
	return (p->flags & (PF_KTHREAD | PF_USER_WORKER) || !left_user_mode(p)) && unnamed_awaited();
}

#endif
