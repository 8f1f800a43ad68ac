/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Where background may run: fences and their loans, and the siblings of critical work.
 *
 * Problem: an interrupt gives a CPU back in microseconds, but not its caches, and not the half of a core
 * that a sibling thread takes. Who cannot have that sets whole cores aside (a fence), or a core's
 * threads apart (exclusive).
 *
 * Method: who owns a CPU is configuration, what runs on it is state; they never share a field. A CPU that
 * chooses asks may_take_background(). Loans of a fence: at any moment, as everywhere (gaps); while no
 * critical task is runnable anywhere (idle); never. Exclusive: while no sibling runs critical work. When the
 * answer turns to no, whoever made it so claims the CPUs that run background (tell_*()); when it turns to
 * yes, those that are idle are woken (tell_*()). Each side writes before it reads:
 *   reclaim: what runs here, or who is active | read and clear open[background] of the others, kick them
 *   recheck: open[background] |= this CPU     | read what the others run, or who is active
 *
 * Placement: a CPU whose whole core is idle comes before one whose sibling works; among equals, the one where the
 * task last ran comes first, and then those that share its last-level cache.
 *
 * Limits: starvation turns (progress.bpf.h) ask nobody. Critical work that shares a core is not moved when another core
 * becomes idle; it is placed anew when it wakes up.
 */
#ifndef TEMPER_FENCE_BPF_H
#define TEMPER_FENCE_BPF_H

#include "state.bpf.h"

enum { MOST_THREADS = 8 }; /* of a core */

const volatile struct temper_topology topology SEC(".rodata.topology") = {};

static u32 critical_active; /* tasks of critical that are runnable; atomic; counted for LOAN_IDLE only */

static __always_inline s32 sibling_of(s32 cpu)
{
	return topology.next_sibling[(u32)cpu % MAX_CPUS];
}

/* Those of 64 CPUs, from w * 64 on, that share this one's last-level cache. */
static __always_inline u64 sharers_word(s32 cpu, u32 w)
{
	return topology.llc[(u32)cpu % MAX_CPUS][w % MASK_WORDS];
}

static __always_inline u64 fence_word(u32 word)
{
	return topology.fence[word % MASK_WORDS];
}

static __always_inline bool fenced(s32 cpu)
{
	return fence_word((u32)cpu / 64) >> ((u32)cpu % 64) & 1;
}

static __noinline bool sibling_runs_critical(s32 cpu)
{
	s32 sibling = sibling_of(cpu);

	for (int i = 1; i < MOST_THREADS && sibling != cpu; i++) {
		if (*(volatile u32 *)&cpu_state(sibling)->running == TIER_CRITICAL + 1)
			return true;
		sibling = sibling_of(sibling);
	}
	return false;
}

static __always_inline bool may_take_background(s32 cpu)
{
	if (config.smt_exclusive && sibling_runs_critical(cpu))
		return false;
	if (config.loan == LOAN_GAPS || !fenced(cpu))
		return true;
	return config.loan == LOAN_IDLE && !*(volatile u32 *)&critical_active;
}

#endif
