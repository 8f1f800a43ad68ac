/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What comes into the bucket of one limit (cpu.max), and how long a turn of it is.
 *
 * Problem: quota that comes in evenly, and no more, starves whoever needs little on average and much at once: a collector,
 * a burst of requests. A quota at once, each period, freezes whoever needs more than that.
 *
 * Method: the bucket holds a quota, and the burst; what has not been used stays in it. A ledger of what was taken in each of
 * the last half periods says how much this one may take: two of them a quota and AHEAD for each CPU of the node, but no
 * more than two quotas; twenty of them, ten periods, 1.01 quotas a period; and the burst beside. What was taken
 * beyond the quota is paid back by a tenth of what follows. So whoever always wants more gets its quota evenly, and nobody
 * stands still. A period shorter than SHORT_PERIOD is kept over that. In a cgroup whose mode is LIMITS_FREEZE a quota
 * comes at once, each period.
 *
 * Turns are long while nobody waits, since each costs a timer and a switch, and short enough that all who wait
 * have one soon.
 *
 * Limits: who begins to count within a half period may find that ten periods come to more, by what was used beyond the quota
 * in the rest of that half. Tasks that are never throttled (throttle.bpf.h) take what they need; that is a debt, and paid first.
 */
#ifndef TEMPER_QUOTA_BPF_H
#define TEMPER_QUOTA_BPF_H

#include "tier.bpf.h"

#define AHEAD (25 * MSEC) /* a CPU: what a period may take beyond its quota, but no more than another quota */
#define QUANTUM (5 * MSEC) /* a turn where nobody waits */
#define SHORTEST_TURN (MSEC * 3 / 5)
#define TURN_ROUND (4 * MSEC) /* in which all that wait should have had a turn */
#define LEAST_TAKEN (MSEC / 10) /* with less than that a turn does not begin */
#define FILL_STEP (MSEC / 5)
#define SHORT_PERIOD (10 * MSEC)
#define LEDGER 20 /* half periods in a row that keep the limit to the percent */
#define LONGEST_PERIOD (1000 * MSEC) /* the kernel takes no longer one */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_CGROUPS);
	__type(key, u32);
	__type(value, struct temper_limit);
} limits SEC(".maps");

static u64 limits_gen; /* raised by any change of a limit; 0: there has never been one */

static __always_inline struct temper_limit *limit_at(u32 index)
{
	return bpf_map_lookup_elem(&limits, &index);
}

/* CPUs, times 2^20. */
static __always_inline u64 rate_of(struct temper_limit *l)
{
	return (l->quota_ns << 20) / l->period_ns;
}

static __always_inline s64 half_quota(struct temper_limit *l)
{
	return (rate_of(l) * l->half_ns) >> 20;
}

static __always_inline s64 capacity(struct temper_limit *l)
{
	return l->burst_ns + 2 * half_quota(l);
}

/*
 * What the half period that begins may use, so that two in a row come to no more than a quota and `beyond`, and any twenty
 * to no more than 1.01 quotas a period. What goes beyond the quota is repaid by a tenth of each half period that follows,
 * and not all at once at the end: of every row that is under way, nine tenths are kept for each that is to come.
 */
static s64 allowance(struct temper_limit *l)
{
	s64 half = half_quota(l), kept = half * 9 / 10, beyond = AHEAD * config.nr_online, allowed = kept;

	if (beyond > 2 * half)
		beyond = 2 * half;
	for (u32 k = 0; k < LEDGER; k++) {
		s64 used = l->paid_ns - l->paid_before[(l->at - k) % TEMPER_MARKS];
		s64 row = half * LEDGER * 101 / 100 + l->burst_ns - used - (LEDGER - 1 - k) * kept;

		if (k < 2 && row > capacity(l) + beyond - used - (1 - k) * kept)
			row = capacity(l) + beyond - used - (1 - k) * kept;
		if (!k || row < allowed)
			allowed = row;
	}
	return allowed > kept ? allowed : kept;
}

/*
 * Who was idle for that long begins a half period now, as with the kernel: then what it uses at once counts from its start for
 * whoever begins to count there. Global, so that the verifier follows its loop once.
 */
__noinline u32 begin_half_period(u32 index, u64 now)
{
	struct temper_limit *l = limit_at(index);
	u64 ended, idle, passed, paid;

	if (!l || !l->half_ns)
		return 0;
	ended = l->half_ends;
	paid = l->paid_ns;
	idle = ended ? (now - ended) / l->half_ns : TEMPER_MARKS;
	passed = idle ?: 1;
	for (u32 k = 0; k < TEMPER_MARKS && k < passed; k++) {
		l->at++;
		l->paid_before[l->at % TEMPER_MARKS] = paid;
	}
	l->half_ends = (idle ? now : ended) + l->half_ns;
	l->allowed_ns = allowance(l);
	if (l->at % 2)
		return 0;
	bool throttled = l->throttled || l->throttles != l->throttles_before;

	/* One who waits all through a period counts as well: who divides the two has no more than 1. */
	if (throttled || paid != l->paid_before[(l->at - 2) % TEMPER_MARKS])
		l->periods++;
	if (throttled)
		l->throttled_periods++;
	l->throttles_before = l->throttles;
	return 0;
}

/* What becomes of who has used up the limit of this cgroup: enum temper_limits. */
static __always_inline u32 mode_of(u32 index)
{
	struct cgroup_slot *s = slot_at(index);
	u64 policy = s ? policy_of(s, index) : 0;

	return policy ? limits_of_policy(policy) : config.limits;
}

/* A cgroup has come, or its limit was changed; a quota of 0 is none. */
static void set_limit(u32 index, u64 quota_ns, u64 period_ns, u64 burst_ns)
{
	struct temper_limit *l = limit_at(index);

	if (!l || (!quota_ns && !l->quota_ns))
		return;
	if (!period_ns)
		period_ns = 1;
	/* The kernel takes quotas of centuries: more than all CPUs have is as good, and rate_of() can count it. */
	if (quota_ns > MAX_CPUS * period_ns)
		quota_ns = MAX_CPUS * period_ns;
	if (quota_ns == l->quota_ns && period_ns == l->period_ns && burst_ns == l->burst_ns)
		return;
	if (!l->quota_ns) {
		l->filled_at = clock_ns();
		l->left_ns = quota_ns;
	}
	l->period_ns = period_ns;
	l->half_ns = (l->period_ns > SHORT_PERIOD ? l->period_ns : SHORT_PERIOD) / 2;
	l->half_ends = 0;
	l->burst_ns = burst_ns;
	l->quota_ns = quota_ns;
	if (l->left_ns > capacity(l))
		l->left_ns = capacity(l);
	ordered_add(&limits_gen, 1);
}

/* With LIMITS_FREEZE. */
static __always_inline u32 fill_at_once(struct temper_limit *l, u64 last, u64 since)
{
	u64 periods = since / l->period_ns, came = (periods > 2 ? 2 : periods) * l->quota_ns;
	s64 most = l->burst_ns + l->quota_ns;

	if (!came || ordered_compare_swap(&l->filled_at, last, last + periods * l->period_ns) != last)
		return 0;
	if ((s64)came > most - l->left_ns)
		came = most - l->left_ns;
	relaxed_add(&l->left_ns, came);
	return 0;
}

/*
 * Add what has come since. Of all that try at a time, one does. What is allowed in the half period bounds what comes,
 * evenly, and what the bucket holds, so that nine tenths of what flows in until the half ends come beside it: who has
 * used all else at once goes on.
 */
__noinline u32 fill(u32 index, u64 now)
{
	struct temper_limit *l = limit_at(index);
	u64 last, since, flow, came;
	s64 before, after, allowed, most;

	if (!l)
		return 0;
	last = l->filled_at;
	since = now - last;
	if (!l->period_ns || (s64)since < (s64)FILL_STEP)
		return 0;
	l->mode = mode_of(index);
	if (l->mode == LIMITS_FREEZE)
		return fill_at_once(l, last, since);
	/* A bucket is full after a period of the longest. */
	came = ((since > LONGEST_PERIOD ? LONGEST_PERIOD : since) * rate_of(l)) >> 20;
	if (!came || ordered_compare_swap(&l->filled_at, last, now) != last)
		return 0;
	if ((s64)(now - l->half_ends) >= 0)
		begin_half_period(index, now);
	flow = (rate_of(l) * (l->half_ends - now)) >> 20;
	allowed = l->allowed_ns - (s64)(l->paid_ns - l->paid_before[l->at % TEMPER_MARKS]);
	before = l->left_ns;
	if (allowed - before < (s64)flow)
		came = allowed > before ? (came * (((u64)(allowed - before) << 10) / (flow + 1))) >> 10 : 0;
	most = allowed - (s64)(flow * 9 / 10);
	if (most > capacity(l))
		most = capacity(l);
	after = before + (s64)came;
	if (after > most)
		after = most > 0 ? most : after < 0 ? after : 0;
	relaxed_add(&l->left_ns, after - before); /* others take meanwhile */
	return 0;
}

/*
 * The length of a turn: QUANTUM where nobody waits, and short enough that all who do have one soon. Of a small bucket nobody
 * takes so much that others have to wait until it comes back. Global, as fill() is.
 */
__noinline s64 turn_of(u32 index)
{
	struct temper_limit *l = limit_at(index);
	s64 turn = QUANTUM, some;

	if (!l)
		return 0;
	if (l->throttled) {
		turn = ((TURN_ROUND * rate_of(l)) >> 20) / (l->throttled + 1);
		if (turn < (s64)SHORTEST_TURN)
			turn = SHORTEST_TURN;
	}
	some = (u64)capacity(l) / 4;
	if (some < (s64)LEAST_TAKEN)
		some = LEAST_TAKEN;
	if (turn > some)
		turn = some;
	return turn < (s64)QUANTUM ? turn : (s64)QUANTUM;
}

#endif
