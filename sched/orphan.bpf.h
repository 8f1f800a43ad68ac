/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A scheduler without its supervisor leaves by itself.
 *
 * Problem: the link is pinned so that the scheduler outlives its loader; without
 * anybody left to watch it, it should not stay for ever.
 *
 * Method: user space writes the time into control.heartbeat_ns; a BPF timer compares
 * it each second.
 */
#ifndef TEMPER_ORPHAN_BPF_H
#define TEMPER_ORPHAN_BPF_H

#include "timer.bpf.h"

#define EXIT_ORPHANED 1

static int check_heartbeat(void *map, u32 *index, struct timer_slot *slot)
{
	struct temper_control *c = get_control();
	u64 now = bpf_ktime_get_ns();

	if (left) /* what is attached now is another's */
		return 0;
	if (c && now > c->heartbeat_ns && now - c->heartbeat_ns > config.heartbeat_timeout_ns) {
		scheduler_leave(EXIT_ORPHANED, "no sign of life from the loader for %llu ms", (now - c->heartbeat_ns) / MSEC);
		return 0;
	}
	bpf_timer_start(&slot->timer, 1000 * MSEC, 0);
	return 0;
}

#endif
