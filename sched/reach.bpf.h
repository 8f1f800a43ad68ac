/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Which CPUs may find a task of theirs in a shared queue.
 *
 * Problem: a CPU that looks for a task in a shared queue passes all that may not run there. Six hundred background
 * tasks that are bound to two CPUs cost a critical pair on a third two out of three of its round trips: each
 * time that it sleeps, its CPU looks through all of them in vain.
 *
 * Method: a bit a tier and CPU. Whoever is queued sets the bits of its CPUs, where they are not set. A CPU that has looked in
 * vain twice, and nobody was queued for it in between, clears its own, and does not look again until it is set. Those who are
 * queued for other CPUs, be it by the thousand, do not count.
 *
 * Handshake: whoever is queued sets invited[] and then reads may_find[] (invite()); the CPU clears its bit of may_find[] and
 * then reads invited[] (gave_up()). So one sees the other, and the bit is set. The kernel puts a task into its queue only after
 * enqueue() has returned: between two looks in vain with nobody invited, and with as many in the queue as were published,
 * that has happened, unless a virtual CPU stood still just there. The next round of looks (look.bpf.h) sets the bits of all
 * that wait, and interrupts a CPU for who was not to be found.
 *
 * Limits: when a task comes, each of its CPUs passes once or twice over those that are bound elsewhere.
 */
#ifndef TEMPER_REACH_BPF_H
#define TEMPER_REACH_BPF_H

#include "state.bpf.h"

static u64 arrivals[NR_TIERS]; /* tasks ever published */
static u64 may_find[NR_TIERS][MASK_WORDS];
static u64 invited[NR_TIERS][MASK_WORDS]; /* CPUs for which somebody was queued since they last looked in vain */

/* CPUs w * 64 and on that a task may run on: each word at a place of its own, since the verifier wants that to be a constant. */
static __always_inline u64 allowed_word(struct task_struct *p, u32 w)
{
	const struct cpumask *mask = untrusted(p)->cpus_ptr;

#pragma unroll
	for (u32 n = 0; n < MASK_WORDS; n++)
		if (w == n || config.nr_cpus <= 64 * (n + 1))
			return mask->bits[n];
	return 0;
}

/* Global, so that the verifier follows it once. */
__noinline bool may_run_on(struct task_struct *p __arg_trusted, s32 cpu)
{
	return allowed_word(p, (u32)cpu / 64) >> ((u32)cpu % 64) & 1;
}

/* A task is queued for this tier. Was any of its CPUs not to find it? Partner: gave_up(). */
static __noinline bool invite(struct task_struct *p, u32 tier)
{
	bool all = (u32)p->nr_cpus_allowed >= config.nr_online, any = false;

	for (u32 w = 0; w < MASK_WORDS && w * 64 < config.nr_cpus; w++) {
		u64 *may = &may_find[tier % NR_TIERS][w], *news = &invited[tier % NR_TIERS][w], bits = all ? ~0ULL : allowed_word(p, w);

		if (bits & ~*(volatile u64 *)news)
			ordered_or(news, bits);
		if (bits & ~*(volatile u64 *)may) {
			ordered_or(may, bits);
			any = true;
		}
	}
	return any;
}

static __always_inline bool may_find_in(u32 tier, s32 cpu)
{
	return *(volatile u64 *)&may_find[tier % NR_TIERS][(u32)cpu / 64 % MASK_WORDS] >> ((u32)cpu % 64) & 1;
}

/* A CPU has looked in vain. Partner: invite(). */
static __noinline void gave_up(u32 tier, s32 cpu)
{
	u32 w = (u32)cpu / 64 % MASK_WORDS;
	u64 *may = &may_find[tier % NR_TIERS][w], *news = &invited[tier % NR_TIERS][w], bit = 1ULL << ((u32)cpu % 64);

	if (ordered_and(news, ~bit) & bit)
		return;
	ordered_and(may, ~bit);
	if (*(volatile u64 *)news & bit)
		ordered_or(may, bit);
}

#endif
