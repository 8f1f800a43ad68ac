/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The gap invariant: no standard or background task runs on a CPU for which a task of a
 * higher tier is queued, for longer than it takes to interrupt it. Critical is not
 * interrupted for tasks of the system tier, which wait for the end of its run or the next
 * tick. It is for threads of the kernel that serve one CPU (enqueue()), and for whoever is
 * boosted to system (boost_on()).
 *
 * Problem: a higher task may be queued while no CPU is idle and some run lower work
 * (entry), and a CPU may turn to lower work while a higher task is queued (exit).
 * The two race on different CPUs without a common lock.
 *
 * Method: two checks, each of which writes before it reads.
 *   entry, enqueue():  arrivals[tier]++, queued[tier]++ | read open[lower], claim a CPU, kick it
 *   exit,  running():  open[tier] |= this CPU           | read arrivals[higher], queued[higher]
 * All are atomic operations with a full barrier, so at least one side sees the other:
 * the partner of publish_queued() is recheck(). A CPU is claimed by clearing its bit in
 * open[]; whoever cleared it kicks, so that two arrivals never interrupt one CPU.
 * The kernel puts the task into its queue only after enqueue() has returned: an exit
 * check may see a task published that it cannot take yet. It then interrupts itself
 * and looks again: queued[], without those that a CPU is dequeuing[], exceeds
 * what the queue holds only for that moment. (For a task that is being dequeued it must not: it would
 * take its run queue's lock again and again, for which that CPU waits.)
 *
 * An idle CPU is claimed in the same way: IDLE stands below all tiers. A CPU that finds
 * nothing to do sets its bit in dispatch() and then looks for arrivals that it missed.
 *
 * Limits: background user code that the kernel cannot preempt (interrupts off) is not
 * interrupted earlier than the kernel can. Not claimed, and so not interrupted, are CPUs that
 * run a protected turn: a starvation turn (progress.bpf.h) or that of a boosted task. Who
 * waits for its waker's CPU interrupts nobody for HANDOFF_MOST (handoff.bpf.h).
 */
#ifndef TEMPER_GAP_BPF_H
#define TEMPER_GAP_BPF_H

#include "fence.bpf.h"
#include "limit.bpf.h"
#include "reach.bpf.h"
#include "share.bpf.h"
#include "waiting.bpf.h"

enum { IDLE = NR_TIERS };

/* CPUs that run this tier, or are IDLE, and may be claimed. Rows up to a power of two, so that a mask bounds the index: a
 * comparison does not, where the compiler keeps a copy from before. */
enum { OPEN_ROWS = 8 };
static u64 open[OPEN_ROWS][MASK_WORDS];
static u32 queued[NR_TIERS];		   /* tasks published for the shared queue and not yet running */
static u32 dequeuing[NR_TIERS];		   /* those of them that a CPU is taking; partner: missed_arrival() */

enum { PINNED_QUEUES = 0x1000 };

static __always_inline u64 shared_queue(u32 tier)
{
	return tier + 1;
}

static __always_inline u64 pinned_queue(u32 cpu, u32 tier)
{
	return PINNED_QUEUES + cpu * NR_TIERS + tier;
}

static __always_inline void count_queued(s32 cpu, u32 mark, s32 by)
{
	u32 tier = queued_tier(mark);

	if (queued_kind(mark) == QUEUED_PINNED)
		ordered_add(&cpu_state(cpu)->pinned[tier], by);
	else
		ordered_add(&queued[tier], by);
}

/* A task was counted. */
static void tell_arrival(struct task_struct *p, u32 tier, bool pinned)
{
	if (tier >= NR_TIERS)
		return;
	ordered_add(&arrivals[tier], 1);
	if (!pinned)
		invite(p, tier);
	COUNT_TIER(tier, enqueued);
}

/* Entry, first half: from here on, running() of any CPU knows of the task. Partner: recheck(). */
static void publish_queued(struct task_struct *p, struct task_state *t, bool pinned, s32 cpu)
{
	u32 tier = t->tier;

	if (tier >= NR_TIERS || t->queued)
		return;
	t->queued = queued_mark(pinned, tier);
	t->queued_cpu = cpu;
	count_queued(cpu, t->queued, 1);
	tell_arrival(p, tier, pinned);
	mark_waiting(p->pid);
}

/* The task has left its queue: it runs, or is no longer runnable, or is queued again. */
static void retract_queued(struct task_state *t, u64 now)
{
	u32 was, kind;

	if (t->admitted)
		end_admission(t);
	if (!t->queued)
		return;
	/* Partner: change_queue(). */
	was = ordered_swap(&t->queued, NOT_QUEUED);
	kind = queued_kind(was);
	if (kind == QUEUED_SHARED || kind == QUEUED_PINNED)
		count_queued(t->queued_cpu, was, -1);
	else if (kind == QUEUED_THROTTLED)
		end_throttle(was - QUEUED_THROTTLED, now - t->throttled_at);
}

static __always_inline void begin_dequeue(struct cpu_state *c, u32 tier)
{
	c->taking = tier + 1;
	ordered_add(&dequeuing[tier], 1);
}

/* What this CPU took runs, or is gone: in any case it is choosing anew. */
static __always_inline void end_dequeue(struct cpu_state *c)
{
	u32 tier = c->taking - 1;

	c->taking = 0;
	if (tier < NR_TIERS)
		ordered_add(&dequeuing[tier], -1);
}

/* Tasks in the shared queue of which this CPU may find one of its own. */
static __always_inline u32 within_reach(u32 tier, s32 cpu)
{
	u32 shared = *(volatile u32 *)&queued[tier % NR_TIERS];

	return shared && may_find_in(tier, cpu) ? shared : 0;
}

static __always_inline u64 *open_word(u32 tier, s32 cpu)
{
	return &open[tier & (OPEN_ROWS - 1)][(u32)cpu / 64 % MASK_WORDS];
}

static __always_inline u64 bit_of(s32 cpu)
{
	return 1ULL << ((u32)cpu % 64);
}

/*
 * The first CPU of a word of a mask. The compiler knows that it is one of MAX_CPUS, and the verifier does not: hidden from the
 * one, a bound that is checked later stays in the program for the other.
 */
static __always_inline s32 first_cpu(u64 word, u32 w)
{
	s32 cpu = w * 64 + __builtin_ctzll(word);

	barrier_var(cpu);
	return cpu;
}

static __always_inline void open_cpu(u32 tier, s32 cpu)
{
	ordered_or(open_word(tier, cpu), bit_of(cpu));
}

/* Take this CPU's bit, if it is set; true for the one caller who may kick it. Partner: open_cpu(). */
static __always_inline bool shut_cpu(u32 tier, s32 cpu)
{
	u64 *word = open_word(tier, cpu), bit = bit_of(cpu);

	return (*word & bit) && (ordered_and(word, ~bit) & bit);
}

static __always_inline bool claim_cpu(u32 tier, s32 cpu, u64 now)
{
	if (!shut_cpu(tier, cpu))
		return false;
	if (tier == IDLE)
		return true;
	cpu_state(cpu)->claimed_at = now;
	COUNT_TIER(tier, preempted);
	return true;
}

struct claim {
	s32 cpu; /* -1: none */
	u32 was; /* what it ran: a tier, or IDLE */
	bool background; /* it is for a background task */
	bool whole; /* it has to be a whole core */
	u64 now;
};

/* Are the siblings of this CPU idle? */
static __noinline bool core_is_idle(s32 cpu)
{
	s32 sibling = sibling_of(cpu);

	for (int i = 1; i < MOST_THREADS && sibling != cpu; i++) {
		if (!(*open_word(IDLE, sibling) & bit_of(sibling)))
			return false;
		sibling = sibling_of(sibling);
	}
	return true;
}

/* Claim this CPU, if the task may run there; with claim->whole, only if the whole core is idle. */
static __noinline bool claim_this(struct task_struct *p, u32 lower, s32 cpu, struct claim *claim)
{
	if (!claim || !may_run_on(p, cpu) || (claim->whole && !core_is_idle(cpu)))
		return false;
	if ((claim->background && !may_take_background(cpu)) || !claim_cpu(lower, cpu, claim->now))
		return false;
	claim->cpu = cpu;
	claim->was = lower;
	return true;
}

/* Claim one of the CPUs that run `lower`; with `sharers`, only of those that share the near one's cache. */
static __noinline bool claim_any(struct task_struct *p, u32 lower, bool sharers, s32 near, struct claim *claim)
{
	for (u32 w = 0; w < MASK_WORDS && w * 64 < config.nr_cpus; w++) {
		u64 word = *open_word(lower, w * 64) & (sharers ? sharers_word(near, w) : ~0ULL);

		if (!word)
			continue;
		bpf_repeat(64) {
			s32 cpu = first_cpu(word, w);

			if (claim_this(p, lower, cpu, claim))
				return true;
			word &= word - 1;
			if (!word)
				break;
		}
	}
	return false;
}

static __always_inline bool any_open(u32 tier)
{
	for (u32 w = 0; w < MASK_WORDS && w * 64 < config.nr_cpus; w++)
		if (*open_word(tier, w * 64))
			return true;
	return false;
}

/* Claim a CPU that runs `lower`: the near one if it does, else one near to that. False: there is none. */
static __noinline bool claim_one(struct task_struct *p, u32 lower, s32 near, struct claim *claim)
{
	if (!any_open(lower))
		return false;
	if ((*open_word(lower, near) & bit_of(near)) && claim_this(p, lower, near, claim))
		return true;
	return (config.llcs > 1 && claim_any(p, lower, true, near, claim)) || claim_any(p, lower, false, near, claim);
}

/*
 * Entry, second half: claim the CPU that runs the lowest tier (IDLE is the lowest), from
 * `most` up to what is just below `tier`, of those that the task may run on.
 */
static __noinline void claim_lower(struct task_struct *p, u32 tier, u32 most, s32 near, struct claim *claim)
{
	if (!claim)
		return;
	claim->cpu = -1;
	claim->whole = config.smt;
	if (claim->whole && most == IDLE && claim_one(p, IDLE, near, claim))
		return;
	claim->whole = false;
	for (u32 lower = most; lower > TIER_CRITICAL && lower > tier; lower--)
		if (claim_one(p, lower, near, claim))
			return;
}

/* Claim the one CPU that can run a task: what did it run, or was it IDLE? Beyond that: it is not to be had. */
static __noinline u32 claim_only(u32 tier, s32 cpu, u64 now)
{
	if (tier == TIER_BACKGROUND && !may_take_background(cpu))
		return IDLE + 1;
	for (u32 lower = IDLE; lower > TIER_CRITICAL && lower > tier; lower--)
		if (claim_cpu(lower, cpu, now))
			return lower;
	return IDLE + 1;
}

static __always_inline void kick_claimed(struct claim *claim)
{
	scx_bpf_kick_cpu(claim->cpu, claim->was == IDLE ? KICK_IDLE : KICK_PREEMPT);
}

/* Is a task of a tier above `tier` queued that this CPU has not looked for since it came? */
__noinline bool missed_arrival(u32 tier, s32 cpu)
{
	struct cpu_state *c = cpu_state(cpu);

	for (u32 higher = 0; higher < NR_TIERS; higher++) {
		if (higher >= tier || (higher == TIER_BACKGROUND && !may_take_background(cpu)))
			break;
		u32 shared = within_reach(higher, cpu);
		u32 pinned = *(volatile u32 *)&c->pinned[higher];

		if (!shared && !pinned)
			continue;
		if (arrivals[higher] != c->seen[higher])
			return true;
		/* `queued` is read before the queue's length: see the header. */
		s32 there = shared - *(volatile u32 *)&dequeuing[higher];

		if (there > scx_bpf_dsq_nr_queued(shared_queue(higher)))
			return true;
		if (pinned && (s32)pinned > scx_bpf_dsq_nr_queued(pinned_queue(cpu, higher)))
			return true;
	}
	return false;
}

/*
 * Exit: say what runs here, then look for higher tasks that came meanwhile. Partner: publish_queued().
 * A task that claimed this CPU as an idle one may have been put into its local queue, behind what runs.
 */
static void recheck(u32 tier, s32 cpu)
{
	open_cpu(tier, cpu);
	if (missed_arrival(tier, cpu) || (tier == TIER_BACKGROUND && !may_take_background(cpu)) || scx_bpf_dsq_nr_queued(DSQ_LOCAL_ON | cpu)) {
		COUNT(rechecks);
		scx_bpf_kick_cpu(cpu, KICK_PREEMPT);
	}
}

/* The CPU no longer runs what it was claimed from: how long did that take? */
static void end_claim(struct cpu_state *c, u32 tier, u64 now)
{
	struct temper_stats *s = get_stats();
	u64 since = c->claimed_at;

	if (!since)
		return;
	c->claimed_at = 0;
	if (s && tier == TIER_BACKGROUND && now > since)
		record(c->loan_ended ? &s->loan_back : &s->gap, now - since);
	c->loan_ended = false;
}

/* A CPU may run background no longer. Partner: recheck(). */
static __always_inline void reclaim(s32 cpu, u64 now)
{
	struct cpu_state *c = cpu_state(cpu);

	/* Read by the same operation that writes: a look before it might be too early. */
	if (!(ordered_and(open_word(TIER_BACKGROUND, cpu), ~bit_of(cpu)) & bit_of(cpu)))
		return;
	c->loan_ended = true;
	c->claimed_at = now;
	scx_bpf_kick_cpu(cpu, KICK_PREEMPT);
}

/* A CPU may run background again, and may be idle because it might not. */
static __always_inline void offer(s32 cpu)
{
	if ((*(volatile u32 *)&queued[TIER_BACKGROUND] || cpu_state(cpu)->pinned[TIER_BACKGROUND]) && shut_cpu(IDLE, cpu))
		scx_bpf_kick_cpu(cpu, KICK_IDLE);
}

/* Another task runs here, or none: what of the siblings? `running` as in cpu_state, written with a barrier behind it. */
static __noinline void tell_siblings(s32 cpu, u32 running, u64 now)
{
	bool critical = running == TIER_CRITICAL + 1;
	s32 sibling = sibling_of(cpu);

	ordered_swap(&cpu_state(cpu)->running, running);
	for (int i = 1; i < MOST_THREADS && sibling != cpu; i++) {
		if (critical)
			reclaim(sibling, now);
		else
			offer(sibling);
		sibling = sibling_of(sibling);
	}
}

/* Critical is active somewhere, or no longer: what of the fence? */
static __noinline void tell_fence(bool active, u64 now)
{
	for (u32 w = 0; w < MASK_WORDS && w * 64 < config.nr_cpus; w++) {
		u64 word = fence_word(w) & *open_word(active ? TIER_BACKGROUND : IDLE, w * 64);

		bpf_repeat(64) {
			if (!word)
				break;
			s32 cpu = first_cpu(word, w);

			word &= word - 1;
			if (active)
				reclaim(cpu, now);
			else
				offer(cpu);
		}
	}
}

#endif
