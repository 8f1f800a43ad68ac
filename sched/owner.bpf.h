/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A task that waits for a kernel lock lends its tier, and its CPU, to the holder.
 *
 * Problem: a background task that is interrupted in the middle of a write holds the file's
 * lock. A critical task that wants it waits until parole has let the holder end, a quarter of a
 * millisecond at a time; so does all that queues for the lock behind it.
 *
 * Method: the kernel says when a task begins and ends to wait for a mutex or rwsem (tracepoints
 * contention_begin and _end), and both name their owner and who is next in line. Each time that a waiter
 * goes to sleep, whichever of these has the lock is marked with lock, waiter and tier, and has that
 * tier for as long as it holds the lock and the waiter waits: owes() asks both, so a mark need
 * not be taken back. The waiter's CPU has to choose next, and takes the holder out of its queue; a CPU that
 * alone may run it is interrupted for that, if it runs lower work. The turn ends with the debt.
 *
 * A loan follows the lock. An owner that unlocks leaves it to whom it wakes (end_wait()). One that is
 * woken and finds the lock taken waits on, in the tier that it was lent, and so lends to who took it. An owner
 * that sleeps for another lock hands the loan to that one's holder, along a chain of at most LONGEST_CHAIN.
 * What all this misses (a waiter that leaves while others wait, nested locks) is found by the rounds
 * of look.bpf.h, which repeats the last loan of each CPU while its waiter waits.
 *
 * To be in an RCU section is to own a lock, too, and nobody can tell who waits for it. The same is true of who may not
 * migrate: somebody may wait to move it; and of who may have a lock whose owners are unnamed (unnamed.bpf.h). So whoever was
 * interrupted in one is lent a CPU, an RCU section after SECTION_PATIENCE, and keeps it for up to LONGEST_SECTION until it has
 * ended that. Anybody can be in such a section for most of his time: a CPU that was lent for a while is not lent to a section
 * again for SECTION_SHARE times as long.
 *
 * Those who share a limit wait for each other as they wait for it: a holder goes beyond its limit only for who is not bound
 * by it (owes_beyond()).
 *
 * Limits: readers that have an rwsem, and whoever has one per CPU, are suspected at best (unnamed.bpf.h). Nobody knows who has
 * a semaphore or a page's lock: there parole is what there is. The locks of user space are not the kernel's business.
 */
#ifndef TEMPER_OWNER_BPF_H
#define TEMPER_OWNER_BPF_H

#include "gap.bpf.h"
#include "unnamed.bpf.h"

/* The flags of contention_begin are macros of include/trace/events/lock.h, and in no type data. */
enum { LCB_SPIN = 1, LCB_READ = 2, LCB_WRITE = 4, LCB_RT = 8, LCB_PERCPU = 16, LCB_MUTEX = 32 };

enum { LONGEST_CHAIN = 4 };

#define SECTION_PATIENCE (200 * MSEC)
#define LONGEST_SECTION (2 * MSEC)
#define SECTION_SHARE 31 /* others have a CPU for so much longer, before it is lent to a section again */
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

/* Does it hold the lock that somebody else waits for, or was it just woken to take it? */
static bool owes(struct task_struct *p, struct task_state *t)
{
	u64 lock = t->lent_lock;

	if (!lock || !still_waits(t->lender, lock))
		return false;
	return (s64)(t->woken_until - clock_ns()) > 0 || lock_holder(lock) == (u64)p;
}

/*
 * Does it hold up anybody whom this limit does not bind? Those who share a limit wait for each other as they wait for it: could
 * they let each other go beyond it, two that fight for a lock would have no limit.
 */
static __always_inline bool owes_beyond(struct task_struct *p, struct task_state *t, u32 limited)
{
	return t->lent_lock && !is_within(t->lender_cgroup, limited) && owes(p, t);
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

struct loan {
	u64 lock;
	s32 lender; /* who waits for it */
	u32 cgroup; /* slot of its cgroup or, in a chain, of whose loan is handed on */
	u32 tier;
	s32 cpu; /* that the lender leaves */
};

/* A task can owe one thing at a time: what is asked for by the highest tier and, of equal ones, by who is not of its own cgroup. */
static void mark(struct task_struct *p, struct task_state *t, u64 lock, struct loan *loan, u64 woken_until)
{
	bool same = t->lent_lock == lock && (loan->cgroup != t->cgroup || t->lender_cgroup == t->cgroup);

	if (owes(p, t) && (same ? t->lent_tier < loan->tier : t->lent_tier <= loan->tier))
		return;
	t->lender = loan->lender;
	t->lender_cgroup = loan->cgroup;
	t->lent_tier = loan->tier;
	t->woken_until = woken_until;
	t->lent_lock = lock;
}

/* The cgroup whose limits bind a waiter that hands on what it owes to `other`: its own, where that has none. */
static __always_inline u32 least_bound(struct task_state *t, u32 other)
{
	return limit_of(t->cgroup) == NO_SLOT ? t->cgroup : other;
}

/* Lend to the holder of a lock. If it sleeps for one itself, it is the next to lend, and true is returned. */
__noinline bool lend_once(struct loan *loan)
{
	struct task_struct *p;
	struct task_state *t;
	struct cpu_state *c;
	bool more = false;

	if (!loan)
		return false;
	await_unnamed(loan->lender, loan->lock, clock_ns());
	p = find_holder(loan->lock);
	if (!p)
		return false;
	c = cpu_state(loan->cpu);
	t = task_state(p);
	if (t && p->pid != loan->lender) {
		mark(p, t, loan->lock, loan, 0);
		if (t->tier > loan->tier || t->queued >= QUEUED_HELD) {
			c->lend_tier = loan->tier;
			c->lend_to = p->pid;
		}
		loan->lock = t->wanted_lock;
		loan->lender = p->pid;
		loan->cgroup = least_bound(t, loan->cgroup);
		more = loan->lock;
	}
	bpf_task_release(p);
	return more;
}

/* A task sleeps for a lock, and leaves this CPU. Partner: end_wait(). */
static void lend(struct task_struct *p, struct task_state *t, s32 cpu)
{
	struct loan loan = { t->wanted_lock, p->pid, owes(p, t) ? least_bound(t, t->lender_cgroup) : t->cgroup, t->tier, cpu };
	int i;

	if (!loan.lock || loan.tier >= TIER_BACKGROUND)
		return;
	cpu_state(cpu)->waiter = loan.lender;
	bpf_for(i, 0, LONGEST_CHAIN)
		if (!lend_once(&loan))
			return;
}

/* Is the one that last lent this CPU waiting still? Then whoever has the lock now is to have the loan. */
__noinline bool repeat_loan(s32 cpu)
{
	struct cpu_state *c = cpu_state(cpu);
	struct task_struct *p = c->waiter ? bpf_task_from_pid(c->waiter) : NULL;
	struct task_state *t;

	c->waiter = 0;
	if (!p)
		return false;
	t = task_state(p);
	if (t)
		lend(p, t, cpu);
	bpf_task_release(p);
	return true;
}

/*
 * A waiter is being woken. If by the owner that unlocks, that one owes nothing any more, and those who
 * go on waiting wait for this task now. Partner: lend().
 */
static void end_wait(struct task_struct *p, struct task_state *waiter, u64 now)
{
	struct task_state *waker;
	u64 lock = waiter->wanted_lock;

	if (!lock)
		return;
	waker = task_state(bpf_get_current_task_btf());
	if (!waker || waker->lent_lock != lock)
		return;
	waker->woken_until = 0;
	struct loan loan = { lock, waker->lender, waker->lender_cgroup, waker->lent_tier, -1 };

	if (waker->lender != p->pid)
		mark(p, waiter, lock, &loan, now + PICK_UP);
	scx_bpf_kick_cpu(bpf_get_smp_processor_id(), KICK_PREEMPT);
}

/*
 * The CPU that a queued task is to be lent: the one on which it waits or, where others may run it, one that is
 * not lent already.
 */
static __always_inline s32 cpu_to_lend(struct task_struct *p, struct task_state *t)
{
	u32 i;

	if (queued_kind(t->queued) == QUEUED_PINNED)
		return t->queued_cpu;
	bpf_for(i, 0, config.nr_cpus) {
		s32 cpu = (t->queued_cpu + i) % config.nr_cpus;

		if (!cpu_state(cpu)->lend_to && may_run_on(p, cpu))
			return cpu;
	}
	return t->queued_cpu;
}

static void lend_cpu(s32 cpu, s32 pid, u32 tier)
{
	struct cpu_state *c = cpu_state(cpu);

	if (c->lend_to && c->lend_tier <= tier)
		return;
	c->lend_tier = tier;
	c->lend_to = pid;
	if (c->running - 1 > tier)
		scx_bpf_kick_cpu(cpu, KICK_PREEMPT);
}

/* Whoever is lent a CPU to end a section is lent it for a 32nd of the time, however many they are. */
static void lend_to_section(struct task_struct *p, struct task_state *t)
{
	s32 cpu = cpu_to_lend(p, t);
	struct cpu_state *c = cpu_state(cpu);
	u64 now = clock_ns();

	if ((s64)(now - c->section_next) < 0 || (c->lend_to && c->lend_tier == TIER_SYSTEM))
		return;
	c->section_pid = p->pid;
	c->section_next = now + SECTION_SHARE * LONGEST_SECTION; /* until it is known how long it took: end_section() */
	lend_cpu(cpu, p->pid, TIER_SYSTEM);
}

/* Its turn begins, or is over. */
static __always_inline void begin_section(struct cpu_state *c, u64 now)
{
	c->section_began = c->lent_section ? now : 0;
	c->lent_section = false;
}

static __always_inline void end_section(struct cpu_state *c, u64 now)
{
	if (c->section_began)
		c->section_next = now + SECTION_SHARE * (now - c->section_began);
	c->section_began = 0;
}

/* Does the running task go on, though its turn out of order is over? */
static __always_inline bool ends_section(struct cpu_state *c, struct task_struct *p)
{
	u64 began = c->section_began;

	return began && (s64)(clock_ns() - began) < (s64)LONGEST_SECTION &&
	       (in_rcu_section(p) || p->migration_disabled || may_own_unnamed(p));
}

/* A look has found this task queued: does it hold up others? Then it is lent a CPU. */
static __noinline void lend_to_queued(struct task_struct *p, struct task_state *t, s64 waited)
{
	if (owes(p, t))
		lend_cpu(cpu_to_lend(p, t), p->pid, t->lent_tier);
	else if (may_not_migrate(p) || (waited > (s64)SECTION_PATIENCE && in_rcu_section(p)) || may_own_unnamed(p))
		lend_to_section(p, t);
}

/* Move a task from the queue where it is, if it still is, to this CPU, which is choosing. */
static __noinline bool take_out(struct task_struct *p, u32 tier, bool pinned, s32 cpu)
{
	u64 queue = pinned ? pinned_queue(cpu, tier) : shared_queue(tier);
	struct cpu_state *c = cpu_state(cpu);
	struct bpf_iter_scx_dsq it;
	bool taken = false;

	/* Asked again here: whoever changes it after the iterator was made takes the task out of the queue, and it is not found. */
	if (bpf_iter_scx_dsq_new(&it, queue, 0) == 0 && (pinned || (may_run_on(p, cpu) && !p->migration_disabled))) {
		if (!pinned)
			begin_transit(c, tier);
		taken = dsq_move(&it, p, DSQ_LOCAL);
		if (!pinned && !taken)
			end_transit(c);
	}
	bpf_iter_scx_dsq_destroy(&it);
	return taken;
}

/* pace.bpf.h: let go of a task that waits for its limit. */
__noinline bool let_go_holder(s32 pid, u32 index);

/* Take a task that this CPU is lent to, or see to it that the CPU does which can. */
static __always_inline bool take_lent(struct task_struct *p, struct task_state *t, s32 cpu)
{
	struct cpu_state *c = cpu_state(cpu);
	u32 tier = NR_TIERS, mark = t->queued;
	bool section = false, taken, pinned;

	if (mark >= QUEUED_HELD && ((in_section(p) && !waits_in_call(p, t)) || owes_beyond(p, t, mark - QUEUED_HELD)))
		let_go_holder(p->pid, mark - QUEUED_HELD);
	if (t->queued) {
		section = !owes(p, t);
		if (!section || in_section(p) || may_own_unnamed(p))
			tier = t->tier;
	}
	if (tier >= NR_TIERS)
		return false;
	pinned = queued_kind(t->queued) == QUEUED_PINNED;
	if (pinned ? t->queued_cpu != cpu : !may_run_on(p, cpu)) {
		if (t->queued_cpu != cpu)
			lend_cpu(t->queued_cpu, p->pid, c->lend_tier);
		return false;
	}
	taken = take_out(p, tier, pinned, cpu);
	c->lent_section = taken && section;
	if (c->lent_section && may_own_unnamed(p))
		ask_to_tell(p);
	if (taken)
		COUNT_TIER(tier, lent);
	return taken;
}

/* The task that this CPU is lent to is to run. False: it does not. */
__noinline bool take_holder(s32 cpu)
{
	struct cpu_state *c = cpu_state(cpu);
	struct task_struct *p = bpf_task_from_pid(c->lend_to);
	struct task_state *t = p ? task_state(p) : NULL;
	bool for_section = c->section_pid == c->lend_to, taken = false;

	c->lend_to = c->section_pid = 0;
	c->lent_section = false;
	if (p && t)
		taken = take_lent(p, t, cpu);
	if (p)
		bpf_task_release(p);
	/* It has run meanwhile, or is gone: the next may have its turn. */
	if (for_section && !taken)
		c->section_next = clock_ns();
	return taken;
}

#endif
