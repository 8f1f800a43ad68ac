/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Counters and histograms, one copy a CPU, summed by readers. Each CPU writes its
 * own copy with plain additions: a reader may see a sum that is one event behind.
 */
#ifndef TEMPER_STATS_BPF_H
#define TEMPER_STATS_BPF_H

#include "state.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct temper_stats);
} stats SEC(".maps");

static __always_inline struct temper_stats *get_stats(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&stats, &zero);
}

/* floor(log2(x)) + 1; 0 for 0. */
static __always_inline u32 bit_length(u32 x)
{
	u32 n = !!x;

	if (x >> 16) { n += 16; x >>= 16; }
	if (x >> 8) { n += 8; x >>= 8; }
	if (x >> 4) { n += 4; x >>= 4; }
	if (x >> 2) { n += 2; x >>= 2; }
	return n + (x >> 1);
}

static __always_inline void record(struct temper_hist *h, u64 ns)
{
	u64 us = ns / 1000;
	u32 bucket = us > 0xffffffff ? TEMPER_HIST_BUCKETS : bit_length(us);

	if (bucket >= TEMPER_HIST_BUCKETS)
		bucket = TEMPER_HIST_BUCKETS - 1;
	h->bucket[bucket]++;
}

static __always_inline void count_wait(u32 tier, u64 ns)
{
	struct temper_stats *s = get_stats();

	if (!s || tier >= NR_TIERS)
		return;
	record(&s->tier[tier].wait, ns);
	if (ns > s->tier[tier].max_wait_ns)
		s->tier[tier].max_wait_ns = ns;
}

#define ADD(field, n)                                  \
	({                                             \
		struct temper_stats *__s = get_stats(); \
		if (__s)                               \
			__s->field += (n);             \
	})
#define COUNT(field) ADD(field, 1)
/* One register holds the tier where it is compared and where it is used: a copy would not be bounded. */
#define COUNT_TIER(t, field)                           \
	({                                             \
		struct temper_stats *__s = get_stats(); \
		u64 __t = (t);                         \
		barrier_var(__t);                      \
		if (__s && __t < NR_TIERS)             \
			__s->tier[__t].field++;        \
	})

#endif
