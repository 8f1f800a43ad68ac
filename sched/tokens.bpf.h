/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Token buckets that bound how far a tier comes first: system's share, critical's reservation, what those do who are to end, and
 * what the kernel does for one CPU.
 *
 * Problem: strictness without a bound starves what stands below. System work must be sure of
 * its share and no more, and one CPU may be all that critical has; critical may be held to what its owners have asked
 * for. Who is told to die, stop or freeze comes first, so that it gets that far; but the kernel may work for it for hours before it does (a core of a large
 * mapping), and a user may have as many of those as he likes. So with the kernel's threads: packets that go
 * round in a network of somebody's own keep those of one CPU busy without an end, terminals that are written to the others.
 *
 * Method: each of the two has a token bucket. It fills with time at its rate (share of the node, reserved CPUs), and its
 * tasks take out what they use while they come first. Whoever becomes runnable with nothing left stands one tier lower:
 * system with critical, critical with standard. There weights decide (share.bpf.h). A bucket holds
 * what comes in in the time `burst`: a service may be that much above its rate for a while. A debt is forgotten beyond
 * what comes in in the time `debt`. Where system's is deep, the kernel's threads, which may work for anybody, stand with
 * standard. On each CPU system has another bucket: critical may have that CPU only. That there is a reservation is a
 * constant, so that without one the verifier removes all of it. How much it is may follow pods: it is a field of map control, which the loader (scheduler.c, reserve()) and
 * the agent (internal/node/enforce, Reserve()) write whole at any time, and each look here reads once. No look needs the
 * last one's amount: what a larger one had left, or a smaller one did not forgive, ends at the next refill.
 *
 * Tasks that are to end, or are boosted for one of the system, have a bucket on each CPU, and beyond it are what they were before:
 * of their own tier, and bound by their limits. Threads that serve a CPU have another, and beyond it stand with critical, as with stock they do with all.
 *
 * Limits: asked when a task is queued or its turn ends, so that a turn (slice_ns) may end in debt. A bucket is refilled
 * once in a millisecond: for as long, what was left of a larger reservation counts, be there none by now.
 */
#ifndef TEMPER_TOKENS_BPF_H
#define TEMPER_TOKENS_BPF_H

#include "tier.bpf.h"
#include "stats.bpf.h"

struct token_bucket {
	s64 ns; /* atomic; what is left, or owed */
	u64 refilled_at;
};

static struct token_bucket system_bucket, critical_bucket;
static struct token_bucket ending_buckets[MAX_CPUS], serving_buckets[MAX_CPUS], system_buckets[MAX_CPUS]; /* of each CPU */

#define SYSTEM_BURST (20 * MSEC)
#define SYSTEM_DEEP (40 * MSEC)	    /* a debt of as much is deep */
#define SYSTEM_DEBT (60 * MSEC)	    /* and of as much the deepest: so much later than they end is their work forgotten */
#define SYSTEM_MCPU 250		    /* of each CPU, a quarter, or system's share if that is more */
#define SYSTEM_BURST_CPU (8 * MSEC) /* comes to 2 ms: it is what critical may have to wait for, and a turn */
#define ENDING_MCPU 125		    /* of each CPU, an eighth */
#define ENDING_BURST (8 * MSEC)	    /* comes to 1 ms: it is what critical may have to wait for */
#define SERVING_MCPU 500	    /* of each CPU, half */
#define SERVING_BURST (10 * MSEC)   /* comes to 5 ms */
#define SERVING_DEBT (60 * MSEC)    /* what it has beside critical counts as well: with both it comes to half */
#define CRITICAL_BURST (100 * MSEC) /* a period of stock's cpu.max: bursts of that length are known to be normal */

static bool has_tokens(struct token_bucket *b, u64 millicpus, u64 burst, u64 debt, u64 now)
{
	u64 last = b->refilled_at;
	s64 most = burst * millicpus / 1000, deepest = -(s64)(debt * millicpus / 1000), since = now - last;

	/* Negative where another CPU has refilled since `now` was read. */
	if (since > (s64)MSEC && ordered_compare_swap(&b->refilled_at, last, now) == last) {
		s64 before = b->ns, after = (before < deepest ? deepest : before) + (s64)((u64)since * millicpus / 1000);

		if (!last || after > most)
			after = most;
		relaxed_add(&b->ns, after - before); /* others pay meanwhile */
	}
	return b->ns > 0;
}

static __always_inline void spend_tokens(struct token_bucket *b, u64 used)
{
	relaxed_add(&b->ns, -(s64)used);
}

/* Of user space, as of now. */
static __always_inline u32 reserved_mcpu(void)
{
	struct temper_control *c = get_control();

	return c ? *(volatile u64 *)&c->reservation_mcpu : 0;
}

static u64 critical_over_at; /* when a critical task last found nothing left */

/* Does critical share with standard? Not only in the moments between what it earns and what it pays. */
static __always_inline bool critical_is_over(u64 now)
{
	return config.reservation && critical_over_at && now - critical_over_at < CRITICAL_BURST;
}

static u32 tier_of_critical(u64 now)
{
	if (!config.reservation || has_tokens(&critical_bucket, reserved_mcpu(), CRITICAL_BURST, CRITICAL_BURST, now))
		return TIER_CRITICAL;
	critical_over_at = now;
	COUNT(critical_over);
	return TIER_STANDARD;
}

static __always_inline struct token_bucket *of_cpu(struct token_bucket *buckets, s32 cpu)
{
	return &buckets[(u32)cpu % MAX_CPUS];
}

static __always_inline u64 system_share(void)
{
	return config.system_share_pct * 10;
}

/*
 * Where a task of the system stands, on this CPU. Work of the kernel may be anybody's: where system owes much, it stands behind
 * critical. Global, so that the verifier looks at it once, by itself.
 */
__noinline u32 tier_of_system(u32 cpu, bool may_be_anybodys, u64 now)
{
	u64 of_node = config.nr_online * system_share(), of_cpu = system_share() > SYSTEM_MCPU ? system_share() : SYSTEM_MCPU;

	if (has_tokens(&system_bucket, of_node, SYSTEM_BURST, SYSTEM_DEBT, now) &&
	    has_tokens(&system_buckets[cpu % MAX_CPUS], of_cpu, SYSTEM_BURST_CPU, SYSTEM_BURST_CPU, now))
		return TIER_SYSTEM;
	COUNT(system_over);
	return may_be_anybodys && system_bucket.ns < -(s64)(SYSTEM_DEEP * of_node / 1000) ? TIER_STANDARD : TIER_CRITICAL;
}

/* May a task that is to end come first, on the CPU that it is on? */
static __noinline bool may_end_first(struct task_struct *p)
{
	return has_tokens(of_cpu(ending_buckets, scx_bpf_task_cpu(p)), ENDING_MCPU, ENDING_BURST, ENDING_BURST, clock_ns());
}

/* May a thread that serves one CPU come first there? */
static __noinline bool may_serve_first(struct task_struct *p)
{
	return has_tokens(of_cpu(serving_buckets, scx_bpf_task_cpu(p)), SERVING_MCPU, SERVING_BURST, SERVING_DEBT, clock_ns());
}

/*
 * A task that belongs to tier `home` has run in `tier`. Who comes before its own tier is to end or is boosted for a
 * moment: both are charged, and of boosts those for a task of the system ask the bucket (inheritance.bpf.h).
 */
static __always_inline void charge_buckets(struct task_struct *p, s32 cpu, u32 home, u32 tier, u64 used)
{
	if (serves_one_cpu(p)) {
		spend_tokens(of_cpu(serving_buckets, cpu), used);
		return;
	}
	if (tier == TIER_SYSTEM)
		spend_tokens(of_cpu(home == TIER_SYSTEM ? system_buckets : ending_buckets, cpu), used);
	if (home == TIER_SYSTEM)
		spend_tokens(&system_bucket, used);
	else if (config.reservation && home == TIER_CRITICAL && tier == TIER_CRITICAL)
		spend_tokens(&critical_bucket, used);
}

#endif
