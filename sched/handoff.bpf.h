/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A waker that is about to sleep serves the task it woke sooner than any CPU that is
 * interrupted for it.
 *
 * Problem: in a chain of services each hop writes to the next and then waits for its own
 * next request. To interrupt background work at every hop costs that work twice the length of
 * a context switch, a thousand times a second, and the interrupted CPU finds the queue empty.
 *
 * Method: the wake-up says so (SCX_WAKE_SYNC). The task is queued, and the interrupt is put
 * off by three times the time that such hand-overs have lately taken, which the scheduler measures
 * itself. When the waker leaves its CPU in that time, its CPU takes the task, and running() ends
 * the hand-over. When it does not, the timer claims a CPU
 * as enqueue() would have. Only one task at a time may wait for a waker; a second one
 * interrupts at once.
 *
 * Limits: a hand-over that does not come off delays the task by at most HANDOFF_MOST. The kernel
 * says "sync" for what a network card's interrupt wakes, too: there the waker is whoever ran.
 */
#ifndef TEMPER_HANDOFF_BPF_H
#define TEMPER_HANDOFF_BPF_H

#include "gap.bpf.h"
#include "timer.bpf.h"

#define HANDOFF_LEAST 1000ULL
#define HANDOFF_MOST 250000ULL

static u64 usual_handoff_ns = 20000; /* moving average; writers race, and each leaves a plausible value */

static __always_inline u64 handoff_patience(void)
{
	u64 ns = 3 * usual_handoff_ns;

	return ns < HANDOFF_LEAST ? HANDOFF_LEAST : ns > HANDOFF_MOST ? HANDOFF_MOST : ns;
}

/* A timer's callback calls this itself, not through another function: the verifier's frames are few. */
static __noinline void claim_for(s32 pid)
{
	struct claim claim = { .cpu = -1, .now = clock_ns() };
	struct task_struct *p = bpf_task_from_pid(pid);
	struct task_state *t;

	if (!p)
		return;
	t = task_state(p);
	if (t && queued_kind(t->queued) == QUEUED_SHARED) {
		claim.background = t->tier == TIER_BACKGROUND;
		claim_lower(p, t->tier, IDLE, t->queued_cpu, &claim);
	} else if (t && queued_kind(t->queued) == QUEUED_PINNED) {
		claim.was = claim_only(t->tier, t->queued_cpu, claim.now);
		if (claim.was <= IDLE)
			claim.cpu = t->queued_cpu;
	}
	bpf_task_release(p);
	if (claim.cpu >= 0)
		kick_claimed(&claim);
}

static int handoff_failed(void *map, u32 *index, struct timer_slot *slot)
{
	struct cpu_state *c = cpu_state(*index - TIMER_HANDOFF);
	s32 pid = c->handoff_pid;

	c->handoff_pid = 0;
	if (pid)
		claim_for(pid);
	return 0;
}

/* Leave the task to the CPU that woke it, for a while? Runs on that CPU, whose waker is current. */
static bool begin_handoff(struct task_struct *p, struct task_state *t)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct cpu_state *c = cpu_state(cpu);

	if (!t->sync_wake || c->handoff_pid || !c->running || c->running - 1 == TIER_BACKGROUND)
		return false;
	if (!start_timer(TIMER_HANDOFF + cpu, handoff_patience(), BPF_F_TIMER_CPU_PIN))
		return false;
	c->handoff_pid = p->pid;
	return true;
}

/*
 * A task that was woken for a hand-over runs, here or elsewhere: nobody has to be interrupted for it.
 * On its waker's CPU, that is how long one takes.
 */
static __always_inline void end_handoff(struct task_struct *p, struct task_state *t, s32 cpu, u64 now)
{
	u64 took = now - t->runnable_at;

	if (!t->sync_wake)
		return;
	t->sync_wake = false;
	ordered_compare_swap(&cpu_state(t->woken_on)->handoff_pid, p->pid, 0);
	if (t->woken_on == cpu && took < HANDOFF_MOST)
		usual_handoff_ns += ((s64)took - (s64)usual_handoff_ns) >> 4;
}

#endif
