/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Who may have what somebody waits for.
 *
 * Problem: any number of tasks have an rwsem to read, and the kernel names none of them; of one per CPU it names nobody. Of a
 * page's lock, SRCU or a completion it does not even say that somebody waits. Who was interrupted there, or was given the lock
 * while he slept, waits for a CPU as his tier does, and keeps others waiting for as long.
 *
 * Method: somebody waits if a task above background waits for such an rwsem, or has slept uninterruptibly for LONG_SLEEP.
 * Meanwhile whoever was switched out in the kernel is suspected: sched_switch tells them from those on their way to user mode.
 * That is a section (inheritance.bpf.h): suspects are boosted, one after the other, for LEAST_TURN each, and all such boosts
 * together have a 32nd of each CPU. Who slept uninterruptibly comes first, since he may have been given the lock; then who was
 * interrupted; then who slept for anything else. A turn ends sooner as he leaves the kernel (leave.bpf.h; before 6.18 nobody
 * says that), or sleeps.
 *
 * Rounds of looks find the suspects, and end as they come by the waiter's CPU. For an rwsem one round follows the other, and
 * the first begins as the wait does. For a sleep there is SLEEP_PERIOD from one to the next, and the first begins after
 * LONG_SLEEP. A round begins sooner than it would once in HURRY_PERIOD at most.
 *
 * Limits: who sleeps for a device's sake has others suspected in vain, up to LONGEST_SLEEP. Of those that wait for an rwsem one
 * is known, and of those that sleep since they left a CPU the first; the next as soon as a round comes by. Where hundreds sleep
 * and are woken in the kernel, all of them are suspected. Who is throttled by a limit is not.
 */
#ifndef TEMPER_UNNAMED_BPF_H
#define TEMPER_UNNAMED_BPF_H

#include "leave.bpf.h"

#define LONG_SLEEP (10 * MSEC)	     /* who sleeps uninterruptibly for as long is taken to wait for somebody */
#define LONGEST_SLEEP (10000 * MSEC) /* and who does for as long to wait for something else */
#define SLEEP_PERIOD (5 * MSEC)	     /* of rounds meanwhile */
#define HURRY_PERIOD (10 * MSEC)

/* In a task's state a lock is its address; what it is is told by bits that no address has. A mutex has none of them. */
enum { IS_RWSEM = 1, IS_PERCPU = 2 /* an rwsem per CPU, be it read or written */, LOCK_KINDS = IS_RWSEM | IS_PERCPU };
enum { RWSEM_READER_OWNED = 1, OWNER_FLAGS = 7 };

/* The last that was seen to wait for such a lock, and the lock: await_unnamed() of any CPU. 0: nobody. */
static s32 unnamed_waiter;
static u64 unnamed_lock;

/* Of those who sleep uninterruptibly for long, one, and since when: see_long_sleep(). */
static s32 long_sleeper;
static u64 long_since;

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

/* Is it in the sleep that began then? */
__noinline bool still_sleeps(s32 pid, u64 since)
{
	struct task_struct *p = bpf_task_from_pid(pid);
	struct task_state *t;
	bool still;

	if (!p)
		return false;
	t = task_state(p);
	still = t && !t->active && t->slept_at == since;
	bpf_task_release(p);
	return still;
}

/* Does somebody sleep who is taken to wait for a lock? */
static __always_inline bool sleep_awaited(u64 now)
{
	s32 sleeper = *(volatile s32 *)&long_sleeper;
	u64 since = *(volatile u64 *)&long_since;

	return sleeper && now - since < LONGEST_SLEEP && still_sleeps(sleeper, since);
}

/*
 * Is a suspect to have a turn on this CPU? Those that are likelier to have a lock come first, and all of a kind in the order of
 * their ids, in which rounds look at them: else those that a round looks at first have each turn. One turn of four is anybody's.
 */
static __always_inline bool is_next_suspect(struct cpu_state *c, u32 kind, s32 pid)
{
	if (kind >= IN_KERNEL_KINDS)
		return false;
	if (kind < c->seeing_suspect)
		c->seeing_suspect = kind;
	if (pid <= c->suspects[kind].last)
		return false;
	c->suspects[kind].left = true;
	return kind <= c->best_suspect || c->suspects_turns % 4 == 0;
}

static __always_inline void count_suspects_turn(struct cpu_state *c, u32 kind, s32 pid)
{
	if (kind < IN_KERNEL_KINDS)
		c->suspects[kind].last = pid;
	c->suspects_turns++;
}

/* A round comes by a CPU. */
static __always_inline void end_look_at_suspects(struct cpu_state *c)
{
	for (u32 kind = 0; kind < IN_KERNEL_KINDS; kind++) {
		if (!c->suspects[kind].left)
			c->suspects[kind].last = 0;
		c->suspects[kind].left = false;
	}
	c->best_suspect = c->seeing_suspect;
	c->seeing_suspect = IN_KERNEL_KINDS;
}

/* A round of looks is to begin then, unless one does sooner. */
static __always_inline void hurry(u64 at, u64 now)
{
	if ((s64)(hurried_to + HURRY_PERIOD - at) > 0)
		at = hurried_to + HURRY_PERIOD;
	if ((s64)(next_round - at) <= 0)
		return;
	next_round = hurried_to = at;
	start_timer(TIMER_LOOK, at - now, 0);
}

/* A task waits for a lock. If somebody unnamed has it, a round is to begin, unless one is under way. */
static __always_inline void await_unnamed(s32 waiter, u64 lock, u64 now)
{
	if (!has_unnamed_owners(lock))
		return;
	unnamed_waiter = waiter;
	unnamed_lock = lock;
	hurry(now, now);
}

/* A task of tier `home` sleeps, and leaves this CPU. Of several that sleep uninterruptibly the first is remembered. */
static __always_inline void see_sleep(struct task_struct *p, struct task_state *t, struct cpu_state *c, u32 home, u64 now)
{
	if ((p->__state & (TASK_UNINTERRUPTIBLE | TASK_NOLOAD)) != TASK_UNINTERRUPTIBLE || t->wanted_lock ||
	    home == TIER_SYSTEM || home >= TIER_BACKGROUND)
		return;
	t->slept_at = now;
	if (c->sleeper && now - c->slept_at < LONGEST_SLEEP && still_sleeps(c->sleeper, c->slept_at))
		return;
	c->slept_at = now;
	c->sleeper = p->pid;
	hurry(now + LONG_SLEEP, now);
}

/* A round comes by a CPU. True: who sleeps since it left this CPU waits for somebody, and is the first to be found. */
static __always_inline bool see_long_sleep(struct cpu_state *c, u64 now)
{
	s32 pid = c->sleeper;
	u64 since = c->slept_at;

	if (!pid || now - since < LONG_SLEEP)
		return false;
	if (now - since >= LONGEST_SLEEP || !still_sleeps(pid, since)) {
		c->sleeper = 0;
		return false;
	}
	if (sleep_awaited(now))
		return false;
	long_sleeper = pid;
	long_since = since;
	return true;
}

/* Is this task, which does not run, or does in the timer's interrupt, suspected? */
static __always_inline bool may_own_unnamed(struct task_state *t, u64 now)
{
	return t->in_kernel && (unnamed_awaited() || sleep_awaited(now));
}

#endif
