/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A scheduler without its supervisor leaves by itself.
 *
 * Problem: the link is pinned so that the scheduler outlives its loader; without
 * anybody left to watch it, it should not stay for ever.
 *
 * Method: user space writes the time into control.heartbeat_ns; a BPF timer compares
 * it each second. The timer's map must stay pinned too: the kernel stops the timers of
 * a map that user space no longer holds.
 */
#ifndef TEMPER_ORPHAN_BPF_H
#define TEMPER_ORPHAN_BPF_H

#include "state.bpf.h"

#define EXIT_ORPHANED 1

struct timer_slot {
	struct bpf_timer timer;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct timer_slot);
} timers SEC(".maps");

static int check_heartbeat(void *map, u32 *key, struct timer_slot *slot)
{
	struct temper_control *c = get_control();
	u64 now = bpf_ktime_get_ns();

	if (c && now > c->heartbeat_ns && now - c->heartbeat_ns > config.heartbeat_timeout_ns) {
		scheduler_leave(EXIT_ORPHANED, "no sign of life from the loader for %llu ms", (now - c->heartbeat_ns) / MSEC);
		return 0;
	}
	bpf_timer_start(&slot->timer, 1000 * MSEC, 0);
	return 0;
}

static s32 watch_heartbeat(void)
{
	struct timer_slot *slot;
	u32 zero = 0;

	if (!config.heartbeat_timeout_ns)
		return 0;
	slot = bpf_map_lookup_elem(&timers, &zero);
	if (!slot)
		return -ENOMEM;
	bpf_timer_init(&slot->timer, &timers, CLOCK_MONOTONIC);
	bpf_timer_set_callback(&slot->timer, check_heartbeat);
	/* Not before a whole timeout: the attach under way may take long, and nobody gives signs of life in it. */
	return bpf_timer_start(&slot->timer, config.heartbeat_timeout_ns, 0);
}

#endif
