/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Priority inheritance: a task that waits for a kernel lock donates its tier, and its CPU, to the holder.
 *
 * Problem: a background task that is interrupted in the middle of a write holds the file's
 * lock. A critical task that wants it waits until starvation turns have let the holder end, a quarter of a
 * millisecond at a time; so does all that queues for the lock behind it. This is priority inversion.
 *
 * Method: the kernel says when a task begins and ends to wait for a mutex or rwsem (tracepoints
 * contention_begin and _end), and both name their owner and who is next in line. Each time that a waiter
 * goes to sleep, it becomes a donor, and whichever of these has the lock is boosted: its state names lock, donor and
 * tier. It has that tier for as long as it holds the lock and the donor waits: is_boosted() asks both, so a boost need
 * not be taken back. The donor's CPU has to choose next, and takes the holder out of its queue; a CPU that
 * alone may run it is interrupted for that, if it runs lower work. The turn ends with the boost.
 *
 * A donation follows the lock. An owner that unlocks leaves it to whom it wakes (end_wait()). One that is
 * woken and finds the lock taken waits on, in its boosted tier, and so donates that to who took it. An owner
 * that sleeps for another lock hands the donation to that one's holder, along a chain of at most LONGEST_CHAIN.
 * What all this misses (a donor that leaves while others wait, nested locks) is found by the rounds
 * of look.bpf.h, which repeats the last donation of each CPU while its donor waits.
 *
 * To be in an RCU section is to own a lock, too, and nobody can tell who waits for it. The same is true of who may not
 * migrate: somebody may wait to move it; and of who may have a lock whose owners are unnamed (unnamed.bpf.h). So whoever was
 * interrupted in one is boosted without a donor, an RCU section after SECTION_PATIENCE, for up to LONGEST_SECTION until it has
 * ended that. Anybody can be in such a section for most of his time: a CPU that ran a boosted section for a while runs none
 * again for SECTION_SHARE times as long.
 *
 * The kernel's workers wait for what a user has the kernel do, without an end if he likes: whoever is boosted for a task of the
 * system is so for an eighth of each CPU (tokens.bpf.h). Beyond that, donors of lower tiers count.
 *
 * Those who share a limit wait for each other as they wait for it: a holder goes beyond its limit only for who is not bound
 * by it (boosted_beyond()).
 *
 * Limits: readers that have an rwsem, and whoever has one per CPU, are suspected at best (unnamed.bpf.h). Nobody knows who has
 * a semaphore or a page's lock: there starvation turns are what there is. The locks of user space are not the kernel's business.
 */
#ifndef TEMPER_INHERITANCE_BPF_H
#define TEMPER_INHERITANCE_BPF_H

#include "gap.bpf.h"
#include "unnamed.bpf.h"

/* The flags of contention_begin are macros of include/trace/events/lock.h, and in no type data. */
enum { LCB_SPIN = 1, LCB_READ = 2, LCB_WRITE = 4, LCB_RT = 8, LCB_PERCPU = 16, LCB_MUTEX = 32 };

enum { LONGEST_CHAIN = 4 };

#define SECTION_PATIENCE (200 * MSEC)
#define LONGEST_SECTION (2 * MSEC)
#define SECTION_SHARE 31 /* others have a CPU for so much longer, before it runs a boosted section again */
#define PICK_UP (20 * MSEC) /* a task that was woken to take a lock takes it within this time */

static __always_inline u64 first_of(struct list_head *line)
{
	struct list_head *first = BPF_CORE_READ(line, next);

	return first == line ? 0 : (u64)first;
}

static __always_inline u64 next_for_mutex(struct mutex *m)
{
	struct mutex___71 *m71 = (void *)m;
	u64 waiter = 0;

	if (bpf_core_field_exists(m71->first_waiter))
		waiter = (u64)BPF_CORE_READ(m71, first_waiter);
	else if (bpf_core_field_exists(m->wait_list))
		waiter = first_of(&m->wait_list);
	return waiter ? (u64)BPF_CORE_READ((struct mutex_waiter *)waiter, task) : 0;
}

static __always_inline u64 next_for_rwsem(struct rw_semaphore *s)
{
	struct rw_semaphore___71 *s71 = (void *)s;
	u64 waiter = 0;

	if (bpf_core_field_exists(s71->first_waiter))
		waiter = (u64)BPF_CORE_READ(s71, first_waiter);
	else if (bpf_core_field_exists(s->wait_list))
		waiter = first_of(&s->wait_list);
	return waiter ? (u64)BPF_CORE_READ((struct rwsem_waiter *)waiter, task) : 0;
}

/*
 * Address of the task that has the lock or, if none is known to, is to have it next; 0: nobody. Of a lock
 * that is gone this is anything, and to be compared only.
 *
 * This and other functions below are global, so that the verifier checks each once, by itself: inlined into a
 * timer's callback, 6.18's ends with an error of its own.
 */
__noinline u64 lock_holder(u64 lock)
{
	struct rw_semaphore *s = (void *)(lock & ~(u64)IS_RWSEM);
	struct mutex *m = (void *)lock;
	u64 owner;

	if (lock & IS_PERCPU)
		return 0;
	if (!(lock & IS_RWSEM)) {
		owner = BPF_CORE_READ(m, owner.counter) & ~(u64)OWNER_FLAGS;
		return owner ?: next_for_mutex(m);
	}
	owner = owner_of_rwsem(lock);
	owner = owner & RWSEM_READER_OWNED ? 0 : owner & ~(u64)OWNER_FLAGS;
	return owner ?: next_for_rwsem(s);
}

static u32 disabled_by_programs; /* in the current task's migration_disabled: 1 or, since 6.18 without PREEMPT_RCU, 0 */

/* A task that attaches a scheduler may migrate but for the program that runs, and no program of ours that sleeps asks. */
static __always_inline void see_what_programs_disable(void)
{
	disabled_by_programs = bpf_get_current_task_btf()->migration_disabled;
}

static __always_inline bool may_not_migrate(struct task_struct *p)
{
	u32 disabled = p->migration_disabled;

	if (disabled && disabled == disabled_by_programs)
		return bpf_get_current_task_btf() != p;
	return disabled;
}

/* Is it in the middle of what nobody can tell who waits for? */
static __always_inline bool in_section(struct task_struct *p)
{
	return in_rcu_section(p) || may_not_migrate(p);
}

/* By a donor: does it hold the lock that somebody else waits for, or was it just woken to take it? */
static bool is_boosted(struct task_struct *p, struct task_state *t)
{
	u64 lock = t->boosted_lock;

	if (!lock || !still_waits(t->donor, lock))
		return false;
	return (s64)(t->woken_until - clock_ns()) > 0 || lock_holder(lock) == (u64)p;
}

/*
 * Does it hold up anybody whom this limit does not bind? Those who share a limit wait for each other as they wait for it: could
 * they let each other go beyond it, two that fight for a lock would have no limit.
 */
static __always_inline bool boosted_beyond(struct task_struct *p, struct task_state *t, u32 limited)
{
	return t->boosted_lock && !is_within(t->donor_cgroup, limited) && is_boosted(p, t);
}

/* The holder of a lock, to be released; NULL where there is none. */
static __always_inline struct task_struct *find_holder(u64 lock)
{
	u64 holder = lock_holder(lock);
	struct task_struct *p = holder ? bpf_task_from_pid(BPF_CORE_READ((struct task_struct *)holder, pid)) : NULL;

	if (p && (u64)p != holder) {
		bpf_task_release(p);
		return NULL;
	}
	return p;
}

/* May it come first for a donor of this tier? */
static __always_inline bool may_be_boosted(struct task_struct *p, u32 tier)
{
	return tier > TIER_SYSTEM || may_end_first(p);
}

/* The tier to which it is boosted just now; NR_TIERS: it is not. */
static u32 boosted_to(struct task_struct *p, struct task_state *t)
{
	return is_boosted(p, t) && may_be_boosted(p, t->boosted_tier) ? t->boosted_tier : NR_TIERS;
}

struct donation {
	u64 lock;
	s32 donor; /* who waits for it */
	u32 cgroup; /* slot of its cgroup or, in a chain, of whose donation is handed on */
	u32 tier;
	s32 cpu; /* that the donor leaves */
};

/* A task has one boost at a time: that of the highest tier and, of equal ones, of a donor that is not of its own cgroup. */
static void boost(struct task_struct *p, struct task_state *t, u64 lock, struct donation *donation, u64 woken_until)
{
	bool same = t->boosted_lock == lock && (donation->cgroup != t->cgroup || t->donor_cgroup == t->cgroup);

	u32 tier = boosted_to(p, t);

	if (tier < NR_TIERS && (same ? tier < donation->tier : tier <= donation->tier))
		return;
	t->donor = donation->donor;
	t->donor_cgroup = donation->cgroup;
	t->boosted_tier = donation->tier;
	t->woken_until = woken_until;
	t->boosted_lock = lock;
}

/* The cgroup whose limits bind a waiter that hands on a donation of `other`: its own, where that has none. */
static __always_inline u32 least_bound(struct task_state *t, u32 other)
{
	return limit_of(t->cgroup) == NO_SLOT ? t->cgroup : other;
}

/* Donate to the holder of a lock. If it sleeps for one itself, it is the next donor, and true is returned. */
__noinline bool donate_once(struct donation *donation)
{
	struct task_struct *p;
	struct task_state *t;
	struct cpu_state *c;
	bool more = false;

	if (!donation)
		return false;
	await_unnamed(donation->donor, donation->lock, clock_ns());
	p = find_holder(donation->lock);
	if (!p)
		return false;
	c = cpu_state(donation->cpu);
	t = task_state(p);
	if (t && p->pid != donation->donor) {
		boost(p, t, donation->lock, donation, 0);
		if ((t->tier > donation->tier || t->queued >= QUEUED_THROTTLED) && may_be_boosted(p, donation->tier)) {
			c->boost_tier = donation->tier;
			c->boost_pid = p->pid;
		}
		donation->lock = t->wanted_lock;
		donation->donor = p->pid;
		donation->cgroup = least_bound(t, donation->cgroup);
		more = donation->lock;
	}
	bpf_task_release(p);
	return more;
}

/* A task sleeps for a lock, and leaves this CPU. Partner: end_wait(). */
static void donate(struct task_struct *p, struct task_state *t, s32 cpu)
{
	struct donation donation = { t->wanted_lock, p->pid, is_boosted(p, t) ? least_bound(t, t->donor_cgroup) : t->cgroup,
				     t->tier, cpu };
	int i;

	if (!donation.lock || donation.tier >= TIER_BACKGROUND)
		return;
	cpu_state(cpu)->donor = donation.donor;
	bpf_for(i, 0, LONGEST_CHAIN)
		if (!donate_once(&donation))
			return;
}

/* Is the last donor of this CPU waiting still? Then whoever has the lock now is to have the donation. */
__noinline bool repeat_donation(s32 cpu)
{
	struct cpu_state *c = cpu_state(cpu);
	struct task_struct *p = c->donor ? bpf_task_from_pid(c->donor) : NULL;
	struct task_state *t;

	c->donor = 0;
	if (!p)
		return false;
	t = task_state(p);
	if (t)
		donate(p, t, cpu);
	bpf_task_release(p);
	return true;
}

/*
 * A waiter is being woken. If by the owner that unlocks, that one is boosted no longer, and those who
 * go on waiting wait for this task now. Partner: donate().
 */
static void end_wait(struct task_struct *p, struct task_state *waiter, u64 now)
{
	struct task_state *waker;
	u64 lock = waiter->wanted_lock;

	if (!lock)
		return;
	waker = task_state(bpf_get_current_task_btf());
	if (!waker || waker->boosted_lock != lock)
		return;
	waker->woken_until = 0;
	struct donation donation = { lock, waker->donor, waker->donor_cgroup, waker->boosted_tier, -1 };

	if (waker->donor != p->pid)
		boost(p, waiter, lock, &donation, now + PICK_UP);
	scx_bpf_kick_cpu(bpf_get_smp_processor_id(), KICK_PREEMPT);
}

/*
 * The CPU that is to run a queued task that is boosted: the one on which it waits or, where others may run it, one that is
 * to run no other such task.
 */
static __always_inline s32 cpu_for_boost(struct task_struct *p, struct task_state *t)
{
	u32 i;

	if (queued_kind(t->queued) == QUEUED_PINNED)
		return t->queued_cpu;
	bpf_for(i, 0, config.nr_cpus) {
		s32 cpu = (t->queued_cpu + i) % config.nr_cpus;

		if (!cpu_state(cpu)->boost_pid && may_run_on(p, cpu))
			return cpu;
	}
	return t->queued_cpu;
}

static void boost_on(s32 cpu, s32 pid, u32 tier)
{
	struct cpu_state *c = cpu_state(cpu);

	if (c->boost_pid && c->boost_tier <= tier)
		return;
	c->boost_tier = tier;
	c->boost_pid = pid;
	if (c->running - 1 > tier)
		scx_bpf_kick_cpu(cpu, KICK_PREEMPT);
}

/* Those who are boosted to end a section have a 32nd of the time of each CPU, however many they are. */
static void boost_section(struct task_struct *p, struct task_state *t)
{
	s32 cpu = cpu_for_boost(p, t);
	struct cpu_state *c = cpu_state(cpu);
	u64 now = clock_ns();

	if ((s64)(now - c->section_next) < 0 || (c->boost_pid && c->boost_tier == TIER_SYSTEM))
		return;
	c->section_pid = p->pid;
	c->section_next = now + SECTION_SHARE * LONGEST_SECTION; /* until it is known how long it took: end_section() */
	boost_on(cpu, p->pid, TIER_SYSTEM);
}

/* Its turn begins, or is over. */
static __always_inline void begin_section(struct cpu_state *c, u64 now)
{
	c->section_began = c->boosted_section ? now : 0;
	c->boosted_section = false;
}

static __always_inline void end_section(struct cpu_state *c, u64 now)
{
	if (c->section_began)
		c->section_next = now + SECTION_SHARE * (now - c->section_began);
	c->section_began = 0;
}

/* Does the running task go on, though its protected turn is over? */
static __always_inline bool ends_section(struct cpu_state *c, struct task_struct *p)
{
	u64 began = c->section_began;

	return began && (s64)(clock_ns() - began) < (s64)LONGEST_SECTION &&
	       (in_rcu_section(p) || p->migration_disabled || may_own_unnamed(p));
}

/* A look has found this task queued: does it hold up others? Then it is boosted. */
static __noinline void boost_queued(struct task_struct *p, struct task_state *t, s64 waited)
{
	u32 tier = boosted_to(p, t);

	if (tier < NR_TIERS)
		boost_on(cpu_for_boost(p, t), p->pid, tier);
	else if (may_not_migrate(p) || (waited > (s64)SECTION_PATIENCE && in_rcu_section(p)) || may_own_unnamed(p))
		boost_section(p, t);
}

#endif
