/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Timers, in one map.
 *
 * Problem: some things have to end at a moment when nothing else happens: a turn of a
 * quarter of a millisecond, a hand-over that did not come off. Ticks are too coarse.
 *
 * Method: a BPF timer each, by index; those of a CPU are started on that CPU and expire
 * there. None is ever cancelled: that would drop its callback, and wait for one that runs.
 * A callback looks whether there is still something to do. The map must stay pinned: the
 * kernel stops the timers of a map that user space no longer holds.
 *
 * Limits: a callback runs in a soft interrupt, and is late by what comes before it.
 */
#ifndef TEMPER_TIMER_BPF_H
#define TEMPER_TIMER_BPF_H

#include "state.bpf.h"

enum {
	TIMER_HEARTBEAT,
	TIMER_LOOK,
	TIMER_LIMITS,
	TIMER_HANDOFF, /* + CPU */
	TIMER_PROTECTED = TIMER_HANDOFF + MAX_CPUS, /* + CPU */
	TIMER_TURN = TIMER_PROTECTED + MAX_CPUS, /* + CPU */
	NR_TIMERS = TIMER_TURN + MAX_CPUS,
};

struct timer_slot {
	struct bpf_timer timer;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, NR_TIMERS);
	__type(key, u32);
	__type(value, struct timer_slot);
} timers SEC(".maps");

static bool left; /* temper_exit(): pinned maps outlive the scheduler, and so do their timers */

typedef int timer_callback(void *map, u32 *index, struct timer_slot *slot);

static __always_inline s32 prepare_timer(u32 index, timer_callback *callback)
{
	struct timer_slot *slot = bpf_map_lookup_elem(&timers, &index);

	if (!slot)
		return -ENOMEM;
	return bpf_timer_init(&slot->timer, &timers, CLOCK_MONOTONIC) ?: bpf_timer_set_callback(&slot->timer, callback);
}

/* One timer for each CPU, from index `first` on. */
static __always_inline s32 prepare_cpu_timers(u32 first, timer_callback *callback)
{
	u32 cpu;

	bpf_for(cpu, 0, config.nr_cpus) {
		s32 err = prepare_timer(first + cpu, callback);

		if (err)
			return err;
	}
	return 0;
}

/* False if it cannot be started; a pending one is put off. */
static __always_inline bool start_timer(u32 index, u64 ns, u64 flags)
{
	struct timer_slot *slot = bpf_map_lookup_elem(&timers, &index);

	return slot && !bpf_timer_start(&slot->timer, ns, flags);
}

#endif
