/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How much CPU time a cgroup with a limit (cpu.max) may use now.
 *
 * Problem: the kernel gives a cgroup its quota at the start of a period, and freezes it when that is spent, for tens
 * of milliseconds. While a sched_ext scheduler is attached it keeps no limit at all.
 *
 * Method: each limited cgroup has a bucket into which its quota flows (quota.bpf.h). Whoever begins to run takes a turn
 * out of the buckets of its cgroup and of all limited ones above it, ahead of use, and gives back what it has not
 * used; what it has used too much is a debt. So at most a turn a CPU is ever on its way. Who finds a bucket empty
 * waits (throttle.bpf.h).
 *
 * A cgroup slot caches which limited one is nearest above it, as it does its tier. Without any limit on the node
 * that is one comparison.
 *
 * Limits: cpu.max of the kernel's cgroups only; before 6.17 it is read (kernel_limits.bpf.h). A turn may end late by what a timer
 * is late.
 */
#ifndef TEMPER_LIMIT_BPF_H
#define TEMPER_LIMIT_BPF_H

#include "kernel_limits.bpf.h"

#define MUCH_OWED (10 * MSEC) /* by a cgroup: a task with a short section in the kernel still gets out of it (leave.bpf.h) */

/* Cgroups that throttle tasks and whose mode is LIMITS_GAP, a bit each. */
enum { SLOT_WORDS = MAX_CGROUPS / 64 };
static u64 throttling[SLOT_WORDS];
static u32 nr_throttling; /* bits that are set */

static void set_throttling(u32 index)
{
	u64 bit = 1ULL << (index % 64);

	if (!(ordered_or(&throttling[index / 64 % SLOT_WORDS], bit) & bit))
		ordered_add(&nr_throttling, 1);
}

static void clear_throttling(u32 index)
{
	u64 bit = 1ULL << (index % 64);

	if (ordered_and(&throttling[index / 64 % SLOT_WORDS], ~bit) & bit)
		ordered_add(&nr_throttling, -1);
}

static __always_inline u64 limited_at(u64 gen, u32 index)
{
	return gen << 16 | index;
}

static __always_inline u32 slot_of_limited(u64 limited)
{
	return limited % MAX_CGROUPS;
}

/* The steps of look_up_limit(), as those of look_up_policy(). */
static __always_inline bool ask_limited(u32 *at, u64 gen, u64 *limited)
{
	struct cgroup_slot *s = slot_at(*at);
	struct temper_limit *l = limit_at(*at);

	if (!s || !l)
		return false;
	*limited = s->limited;
	if (*limited >> 16 == gen)
		return false;
	read_limit(*at);
	*limited = limited_at(gen, l->quota_ns ? *at : NO_SLOT);
	if (l->quota_ns || s->parent == NO_SLOT)
		return false;
	*at = s->parent;
	return true;
}

static __always_inline bool tell_limited(u32 *at, u32 last, u64 limited)
{
	struct cgroup_slot *s = slot_at(*at);

	if (!s)
		return false;
	s->limited = limited;
	if (*at == last)
		return false;
	*at = s->parent;
	return true;
}

/* Global, as are others below, so that the verifier follows the loops once. */
__noinline u32 look_up_limit(u32 index)
{
	u64 gen = *(volatile u64 *)&limits_gen, limited = 0;
	u32 known = index, at = index;

	climb(ask_limited(&known, gen, &limited));
	climb(tell_limited(&at, known, limited));
	return slot_of_limited(limited);
}

/* The nearest limited cgroup, from this one up; NO_SLOT: none. */
static __always_inline u32 limit_of(u32 index)
{
	struct cgroup_slot *s;

	if (!limits_gen || config.limits == LIMITS_IGNORE)
		return NO_SLOT;
	s = slot_at(index);
	if (!s)
		return NO_SLOT;
	return s->limited >> 16 == limits_gen ? slot_of_limited(s->limited) : look_up_limit(index);
}

static __always_inline u32 limit_above(u32 index)
{
	struct cgroup_slot *s = slot_at(index);

	return s && s->parent != NO_SLOT ? limit_of(s->parent) : NO_SLOT;
}

/* The limit of this index, or above it, which is then the next one to look at; NULL: there is none. */
static __always_inline struct temper_limit *next_limit(u32 *index)
{
	struct temper_limit *l = *index == NO_SLOT ? NULL : limit_at(*index);

	if (l)
		*index = limit_above(*index);
	return l;
}

static __always_inline bool is_not_yet(u32 *at, u32 limited)
{
	if (*at == NO_SLOT || *at == limited)
		return false;
	*at = limit_above(*at);
	return true;
}

/* Does the limit of a cgroup count for this one, too? Global, so that the verifier follows the loop once. */
__noinline bool is_within(u32 index, u32 limited)
{
	u32 at = limit_of(index);

	climb(is_not_yet(&at, limited));
	return at != NO_SLOT && at == limited;
}

static __always_inline bool pay_once(u32 *index, s64 ns, u64 used)
{
	struct temper_limit *l = next_limit(index);

	if (!l)
		return false;
	relaxed_add(&l->left_ns, ns);
	relaxed_add(&l->paid_ns, -ns);
	relaxed_add(&l->used_ns, used);
	return true;
}

/* A turn is over, or begins: `ns` back to a cgroup and to all limited ones above it, of which it has used `used`. */
__noinline u32 pay_limits(u32 index, s64 ns, u64 used)
{
	climb(pay_once(&index, ns, used));
	return index;
}

static __always_inline bool bound_turn(u32 *index, u64 now, s64 *most)
{
	u32 at = *index;
	struct temper_limit *l = next_limit(index);
	s64 time, turn;

	if (!l)
		return false;
	fill(at, now);
	time = l->left_ns;
	if (time < (s64)LEAST_TAKEN) {
		*most = -(s64)at;
		return false;
	}
	turn = turn_of(at);
	if (turn < *most)
		*most = turn;
	if (time < *most)
		*most = time;
	return true;
}

/* A turn of what a cgroup has left, and all above it; not above 0: the slot of one without enough, negated. */
__noinline s64 time_left(u32 index, u64 now)
{
	s64 most = QUANTUM;

	climb(bound_turn(&index, now, &most));
	return most;
}

static __always_inline bool need_not_wait(u32 *index, u64 now, u32 *by)
{
	u32 at = *index;
	struct temper_limit *l = next_limit(index);

	if (!l)
		return false;
	fill(at, now);
	if (!l->throttled && l->left_ns >= (s64)LEAST_TAKEN * (1 + l->admitted))
		return true;
	*by = at;
	return false;
}

/* The first limited cgroup, from this one up, for which a task has to wait; NO_SLOT: none. Who waits already comes first. */
__noinline u32 must_wait_for(u32 index, u64 now)
{
	u32 by = NO_SLOT;

	climb(need_not_wait(&index, now, &by));
	return by;
}

static __always_inline bool owes_little(u32 *index, bool *much)
{
	struct temper_limit *l = next_limit(index);

	if (!l)
		return false;
	*much = l->left_ns < -(s64)MUCH_OWED;
	return !*much;
}

/* Has this cgroup, or one above it, used so much beyond its limit that it may hardly use more before it has paid? */
__noinline bool owes_much(u32 index)
{
	bool much = false;

	climb(owes_little(&index, &much));
	return much;
}

static __always_inline bool has_gaps(u32 *index, bool *gaps)
{
	struct temper_limit *l = next_limit(index);

	if (l)
		*gaps = l->mode == LIMITS_GAP;
	return l && *gaps;
}

/*
 * May a task whose nearest limit is this one run in gaps beyond it? All limits above have to allow it, too, since what is
 * used in gaps is paid by none.
 */
__noinline bool gaps_beyond(u32 index)
{
	bool gaps = false;

	climb(has_gaps(&index, &gaps));
	return gaps;
}

/* The kernel's word for none is the greatest number. */
static __always_inline u64 quota_ns(u64 us)
{
	return us < 1ULL << 50 ? us * 1000 : 0;
}

/* A task need not wait for its limit, but for a CPU. */
static void begin_admission(struct task_state *t, u32 index)
{
	struct temper_limit *l = limit_at(index);

	if (!l)
		return;
	t->limited = index;
	t->admitted = true;
	ordered_add(&l->admitted, 1);
}

static void end_admission(struct task_state *t)
{
	struct temper_limit *l = limit_at(t->limited);

	t->admitted = false;
	t->limited = NO_SLOT;
	if (l)
		ordered_add(&l->admitted, -1);
}

/* A task begins to wait for this limit: true for the first. */
static bool begin_throttle(u32 index, u64 now)
{
	struct temper_limit *l = limit_at(index);

	if (!l)
		return false;
	relaxed_add(&l->throttles, 1);
	if (ordered_add(&l->throttled, 1))
		return false;
	l->throttled_since = now;
	if (gaps_beyond(index))
		set_throttling(index);
	return true;
}

/* It need not wait any longer. */
static void end_throttle(u32 index, u64 waited)
{
	struct temper_limit *l = limit_at(index);

	if (!l)
		return;
	ordered_add(&l->throttled, -1);
	if ((s64)waited > (s64)l->longest_throttle_ns)
		l->longest_throttle_ns = waited;
}

#endif
