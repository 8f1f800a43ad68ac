/* SPDX-License-Identifier: GPL-2.0 */
/*
 * scx_temper: strict tiers, and gaps for background work.
 *
 * Tiers: system, critical, standard, background (tier.bpf.h). One shared queue a tier,
 * ordered by virtual time (share.bpf.h), and one a tier and CPU for tasks that only
 * that CPU can run. A task that finds a CPU idle is placed on it at once. Otherwise it
 * is queued, and a CPU that runs a lower tier is interrupted (gap.bpf.h). A CPU that
 * has to choose takes the highest tier that has a task for it, but for what is overdue
 * (progress.bpf.h, age.bpf.h). Who has used up its cgroup's cpu.max waits (throttle.bpf.h).
 * Background is never left in a CPU's local queue: whatever stops running with time left is
 * queued again, behind what is above it.
 *
 * The ops below stand in the order in which a task meets them.
 */
#include "kern.h"
#include "intf.h"
#include "state.bpf.h"
#include "stats.bpf.h"
#include "watchdog.bpf.h"
#include "tier.bpf.h"
#include "tokens.bpf.h"
#include "share.bpf.h"
#include "gap.bpf.h"
#include "handoff.bpf.h"
#include "inheritance.bpf.h"
#include "age.bpf.h"
#include "progress.bpf.h"
#include "throttle.bpf.h"
#include "look.bpf.h"
#include "orphan.bpf.h"
#include "take.bpf.h"

char _license[] SEC("license") = "GPL";

SEC("struct_ops/init_task")
s32 BPF_PROG(temper_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	struct task_state *t = bpf_task_storage_get(&task_states, p, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!t)
		return -ENOMEM;
	__builtin_memset(t, 0, sizeof(*t)); /* the last scheduler's, perhaps */
	if (args->fork)
		inherit_rt_throttle(p);
	else
		see_what_programs_disable();
	enter_cgroup(t, args->cgroup);
	t->vtime_tier = NR_TIERS;
	return 0;
}

SEC("struct_ops/enable")
void BPF_PROG(temper_enable, struct task_struct *p)
{
	struct task_state *t = task_state(p);

	if (t)
		t->charged_exec = p->se.sum_exec_runtime;
}

SEC("struct_ops/select_cpu")
s32 BPF_PROG(temper_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	struct task_state *t = task_state(p);
	struct claim claim = { .cpu = -1, .now = clock_ns() };

	if (!t)
		return prev_cpu;
	/* Whichever comes first, its waker's CPU or another, takes it from the queue: enqueue_shared(). */
	t->woken_on = bpf_get_smp_processor_id();
	t->sync_wake = (wake_flags & WAKE_SYNC) && may_run_on(p, t->woken_on);
	if (t->sync_wake)
		return prev_cpu;
	u32 tier = enter_tier(p, t, claim.now);

	/* To be throttled it has to be queued. */
	if (check_limit(p, t, claim.now) != NO_SLOT)
		return prev_cpu;
	claim.background = tier == TIER_BACKGROUND;
	claim_lower(p, tier, IDLE, prev_cpu, &claim);
	if (claim.cpu < 0 || tier >= NR_TIERS)
		return prev_cpu;
	if (claim.was == IDLE)
		COUNT_TIER(tier, placed_idle);
	/* One that was idle may run background by the time that the task is there. */
	dsq_insert(p, DSQ_LOCAL, slice_ns[tier], ENQ_PREEMPT);
	return claim.cpu;
}

/* Put a task on the CPU that alone can run it or, where that is taken, into its queue. */
static void enqueue_pinned(struct task_struct *p, struct task_state *t, u64 now, u64 enq_flags)
{
	struct claim claim = { .cpu = scx_bpf_task_cpu(p) };
	u32 tier = t->tier;

	if (tier >= NR_TIERS)
		return;
	claim.was = claim_only(tier, claim.cpu, now);
	if (claim.was <= IDLE) {
		if (claim.was == IDLE)
			COUNT_TIER(tier, placed_idle);
		dsq_insert(p, DSQ_LOCAL, slice_ns[tier], enq_flags | ENQ_PREEMPT);
		return;
	}
	publish_queued(p, t, true, claim.cpu);
	dsq_insert_vtime(p, pinned_queue(claim.cpu, tier), slice_ns[tier], queue_position(p, t, now), enq_flags);
	claim.was = claim_only(tier, claim.cpu, now);
	if (claim.was <= IDLE)
		kick_claimed(&claim);
}

static void enqueue_shared(struct task_struct *p, struct task_state *t, u64 now, u64 enq_flags)
{
	s32 near = scx_bpf_task_cpu(p);
	struct claim claim = { .cpu = -1, .now = now };
	u32 tier = t->tier;

	if (tier >= NR_TIERS)
		return;
	claim.background = tier == TIER_BACKGROUND;
	publish_queued(p, t, false, near);
	dsq_insert_vtime(p, shared_queue(tier), slice_ns[tier], queue_position(p, t, now), enq_flags);
	claim_lower(p, IDLE - 1, IDLE, near, &claim);
	if (claim.cpu < 0 && begin_handoff(p, t))
		return;
	if (claim.cpu < 0)
		claim_lower(p, tier, TIER_BACKGROUND, near, &claim);
	if (claim.cpu >= 0)
		kick_claimed(&claim);
}

SEC("struct_ops/enqueue")
void BPF_PROG(temper_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct task_state *t = task_state(p);
	u64 now = clock_ns();
	u32 by;

	if (!t) {
		scheduler_error("task %d has no state", p->pid);
		return;
	}
	retract_queued(t, now);
	t->in_gap = false;
	enter_tier(p, t, now);
	if (t->tier == TIER_SYSTEM && serves_one_cpu(p)) {
		dsq_insert(p, DSQ_LOCAL, slice_ns[TIER_SYSTEM], enq_flags | ENQ_PREEMPT);
		return;
	}
	by = check_limit(p, t, now);
	if (by != NO_SLOT)
		throttle(p, t, by, now, enq_flags);
	else if (p->nr_cpus_allowed == 1 || may_not_migrate(p))
		enqueue_pinned(p, t, now, enq_flags);
	else
		enqueue_shared(p, t, now, enq_flags);
}

/* Let the task that ran go on: for the kernel, one with a slice needs no choosing. */
static void keep(struct task_struct *p, struct task_state *t, u32 tier, s32 cpu, u64 now)
{
	struct cpu_state *c = cpu_state(cpu);

	/*
	 * take() lets go of the run queue's lock: a task that claimed this CPU may have been
	 * put here meanwhile. A new slice would undo its interrupt, and hold it up for as long.
	 */
	if (tier >= NR_TIERS || scx_bpf_dsq_nr_queued(DSQ_LOCAL_ON | cpu))
		return;
	end_claim(c, tier, now);
	c->protected = ends_first(t);
	c->served_at[tier] = now;
	set_slice(p, slice_ns[tier]);
	begin_turn(p, t, cpu, now);
	if (c->protected)
		protect_turn(cpu, LEAST_TURN);
	if (tier > TIER_CRITICAL)
		recheck(tier, cpu);
}

/* Has a task changed its tier while it ran? */
static void change_tier(struct task_struct *p, struct task_state *t, s32 cpu, u64 now)
{
	u32 before = t->tier, tier = enter_tier(p, t, now);

	if (tier == before)
		return;
	if (before > TIER_CRITICAL)
		shut_cpu(before, cpu);
	cpu_state(cpu)->running = tier + 1;
	if (config.smt_exclusive)
		tell_siblings(cpu, tier + 1, now);
}

static bool higher_queued(u32 tier, s32 cpu)
{
	for (u32 higher = 0; higher < NR_TIERS; higher++) {
		if (higher >= tier)
			return false;
		if (within_reach(higher, cpu) || cpu_state(cpu)->pinned[higher])
			return true;
	}
	return false;
}

SEC("struct_ops/dispatch")
void BPF_PROG(temper_dispatch, s32 cpu, struct task_struct *prev)
{
	struct task_state *t = prev && (prev->scx.flags & TASK_QUEUED) ? task_state(prev) : NULL;
	struct cpu_state *c = cpu_state(cpu);
	u64 now = clock_ns(), turn = 0;
	u32 prev_tier = NR_TIERS, overdue, boosted;
	bool over = false;

	end_dequeue(c);
	c->protected_next = 0;
	c->boosted_section = false;
	if (t) {
		charge(prev, t, now);
		if (t->limited != NO_SLOT) {
			pay_turn(prev, t);
			over = turn_must_end(prev, t, now);
		}
		t->in_gap = over && gaps_beyond(t->limited);
		if (t->in_gap)
			t->beyond_until = 0;
		/* Its turn goes on for as long as it is boosted: to system, from when it counts there, since only so it is charged. */
		boosted = c->protected && !over ? boosted_to(prev, t) : NR_TIERS;
		if (boosted < NR_TIERS && (boosted > TIER_SYSTEM || t->tier == TIER_SYSTEM) && !higher_queued(boosted, cpu)) {
			set_slice(prev, slice_ns[TIER_BACKGROUND]);
			protect_turn(cpu, LEAST_TURN);
			begin_turn(prev, t, cpu, now);
			return;
		}
		change_tier(prev, t, cpu, now);
		limit_lag(prev, t);
		/* Where it may not stay, the kernel fetches it; where it has to wait, it is queued anew. */
		if (may_run_on(prev, cpu) && (!over || t->in_gap))
			prev_tier = t->tier;
	}
	overdue = overdue_tier(cpu, prev_tier, now, &turn);
	if (overdue < NR_TIERS && overdue != prev_tier && take(overdue, cpu)) {
		c->protected_next = turn;
		COUNT_TIER(overdue, starvation_turns);
		return;
	}
	for (u32 tier = 0; tier < NR_TIERS; tier++) {
		if (tier == TIER_BACKGROUND && !may_take_background(cpu))
			break;
		read_first(&c->seen[tier], &arrivals[tier]);
		if (c->boost_pid && c->boost_tier == tier && is_this_cpu(cpu) && take_holder(cpu)) {
			c->protected_next = LEAST_TURN;
			return;
		}
		if (tier == prev_tier) {
			if (!due_before(prev->scx.dsq_vtime, tier, cpu) || !take(tier, cpu))
				keep(prev, t, tier, cpu, now);
			return;
		}
		if ((within_reach(tier, cpu) || c->pinned[tier]) && take(tier, cpu))
			return;
	}
	if (may_take_background(cpu) && is_this_cpu(cpu) && take_throttled(cpu, now))
		return;
	/* It stays idle. One that becomes so says it in update_idle(): a real-time task may take it first. */
	if (!c->busy)
		recheck(IDLE, cpu);
}

/* A CPU that runs anything, be it a real-time task, is not idle. */
SEC("struct_ops/update_idle")
void BPF_PROG(temper_update_idle, s32 cpu, bool idle)
{
	struct cpu_state *c = cpu_state(cpu);

	c->busy = !idle;
	if (!idle) {
		c->free_until = clock_ns();
		shut_cpu(IDLE, cpu);
		return;
	}
	end_dequeue(c);
	if (config.smt_exclusive)
		tell_siblings(cpu, 0, 0);
	recheck(IDLE, cpu);
}

SEC("struct_ops/running")
void BPF_PROG(temper_running, struct task_struct *p)
{
	s32 cpu = scx_bpf_task_cpu(p);
	struct cpu_state *c = cpu_state(cpu);
	struct task_state *t = task_state(p);
	u64 now = clock_ns();

	if (!t)
		return;
	u32 kind = queued_kind(t->queued);

	/* Another that got in before it leaves it where it is: being dequeued. */
	if (kind == QUEUED_SHARED)
		end_dequeue(c);
	retract_queued(t, now);
	/* It has been in no queue: the kernel put it back where it ran, after a change of its policy, say. */
	if (!t->active)
		enter_tier(p, t, now);
	if (t->in_gap)
		t->tier = TIER_BACKGROUND;
	u32 tier = t->tier;

	if (tier >= NR_TIERS)
		return;
	if (t->waits_since && (s64)(now - t->waits_since) > (s64)LONG_WAIT)
		end_long_wait(kind, t->throttled_at, cpu, t->waits_since, now);
	t->waits_since = 0;
	begin_turn(p, t, cpu, now);
	count_wait(tier, now - t->runnable_at);
	end_handoff(p, t, cpu, now);
	charge(p, t, now);
	advance_clock(p, t);
	c->running = tier + 1;
	c->claimed_at = 0;
	c->served_at[tier] = now;
	if (config.smt_exclusive)
		tell_siblings(cpu, tier + 1, now);
	u64 turn = c->protected_next;

	if (!turn && ends_first(t))
		turn = LEAST_TURN;
	c->protected = turn;
	c->protected_next = 0;
	begin_section(c, now);
	if (turn) {
		protect_turn(cpu, turn);
		return;
	}
	if (tier > TIER_CRITICAL)
		recheck(tier, cpu);
}

/*
 * Who waits behind a critical task as a task of the system tier sends no kick, and has its turn here. For others it is a
 * backstop: a kick that was lost ends at the next tick. A protected turn has a timer to end it.
 */
SEC("struct_ops/tick")
void BPF_PROG(temper_tick, struct task_struct *p)
{
	s32 cpu = scx_bpf_task_cpu(p);
	struct task_state *t = task_state(p);

	if (!t || cpu_state(cpu)->protected)
		return;
	if (higher_queued(t->tier, cpu))
		set_slice(p, 0);
}

SEC("struct_ops/stopping")
void BPF_PROG(temper_stopping, struct task_struct *p, bool runnable)
{
	s32 cpu = scx_bpf_task_cpu(p);
	struct cpu_state *c = cpu_state(cpu);
	struct task_state *t = task_state(p);
	u64 now = clock_ns();

	if (!t)
		return;
	/* Whoever interrupts background waits for this CPU now: background is charged when it goes on. */
	if (t->tier != TIER_BACKGROUND)
		charge(p, t, now);
	if (t->limited != NO_SLOT)
		end_turn(p, t, cpu);
	end_claim(c, t->tier, now);
	if (t->tier > TIER_CRITICAL)
		shut_cpu(t->tier, cpu);
	c->running = 0;
	c->free_until = now;
	c->protected = false;
	end_section(c, now);
	if (!runnable) {
		leave_tier(p, t, now);
		donate(p, t, cpu);
		return;
	}
	t->runnable_at = t->waits_since = now;
	/*
	 * With time left the kernel would put it at the head of this CPU's local queue,
	 * to resume after a real-time task, say, ahead of all that is queued above it.
	 */
	set_slice(p, 0);
}

/* It goes to a scheduling class above, out of a queue perhaps. */
SEC("struct_ops/disable")
void BPF_PROG(temper_disable, struct task_struct *p)
{
	struct task_state *t = task_state(p);
	u64 now = clock_ns();

	if (!t)
		return;
	retract_queued(t, now);
	leave_tier(p, t, now);
	t->waits_since = 0;
}

/* The current task is about to sleep for a lock of the kernel: temper_stopping() follows. */
SEC("tp_btf/contention_begin")
int BPF_PROG(temper_contention_begin, void *lock, u32 flags)
{
	struct task_struct *p = bpf_get_current_task_btf();
	struct task_state *t;

	if (left || flags & (LCB_SPIN | LCB_RT) || !(flags & (LCB_MUTEX | LCB_READ | LCB_WRITE)))
		return 0;
	t = task_state(p);
	if (!t)
		return 0;
	t->wanted_lock = (u64)lock | (flags & LCB_MUTEX ? 0 : flags & LCB_PERCPU ? IS_PERCPU : IS_RWSEM);
	/* Of a real-time task, which has no tier, its sleeping is not told. */
	if (p->prio < MAX_RT_PRIO) {
		t->tier = TIER_CRITICAL;
		donate(p, t, bpf_get_smp_processor_id());
	}
	return 0;
}

/* It has the lock, or has given up. */
SEC("tp_btf/contention_end")
int BPF_PROG(temper_contention_end, void *lock, int result)
{
	struct task_state *t = task_state(bpf_get_current_task_btf());

	if (!t || (t->wanted_lock & ~(u64)LOCK_KINDS) != (u64)lock)
		return 0;
	t->wanted_lock = 0;
	t->woken_until = 0;
	return 0;
}

SEC("struct_ops/set_weight")
void BPF_PROG(temper_set_weight, struct task_struct *p, u32 weight)
{
	struct task_state *t = task_state(p);

	if (!t || !t->active || t->active_weight == weight)
		return;
	deactivate(p, t, clock_ns());
	activate(t, t->active_tier, weight);
}

SEC("struct_ops.s/cgroup_init")
s32 BPF_PROG(temper_cgroup_init, struct cgroup *cgrp, struct scx_cgroup_init_args *args)
{
	s32 err;

	open_slot(cgrp, args->weight);
	err = open_limit(cgrp, args);
	if (err)
		close_slot(cgrp);
	return err;
}

SEC("struct_ops.s/cgroup_exit")
void BPF_PROG(temper_cgroup_exit, struct cgroup *cgrp)
{
	close_limit(cgrp);
	close_slot(cgrp);
}

SEC("struct_ops/cgroup_move")
void BPF_PROG(temper_cgroup_move, struct task_struct *p, struct cgroup *from, struct cgroup *to)
{
	struct task_state *t = task_state(p);

	if (!t)
		return;
	deactivate(p, t, clock_ns());
	enter_cgroup(t, to);
}

SEC("struct_ops/cgroup_set_weight")
void BPF_PROG(temper_cgroup_set_weight, struct cgroup *cgrp, u32 weight)
{
	set_cgroup_weight(cgrp, weight);
}

SEC("struct_ops/cgroup_set_bandwidth")
void BPF_PROG(temper_cgroup_set_bandwidth, struct cgroup *cgrp, u64 period_us, u64 quota_us, u64 burst_us)
{
	change_limit(cgrp, period_us, quota_us, burst_us);
}

static __always_inline s32 start_timers(void)
{
	s32 err = prepare_cpu_timers(TIMER_HANDOFF, handoff_failed) ?: prepare_cpu_timers(TIMER_PROTECTED, end_protected_turn) ?:
		  prepare_cpu_timers(TIMER_TURN, turn_is_over) ?:
		  prepare_timer(TIMER_LOOK, look_at_waiting) ?: prepare_timer(TIMER_HEARTBEAT, check_heartbeat);

	if (err || !start_timer(TIMER_LOOK, LOOK_PERIOD, 0))
		return err ?: -ENOMEM;
	if (config.read_limits && (prepare_timer(TIMER_LIMITS, read_limits_anew) || !start_timer(TIMER_LIMITS, READ_PERIOD, 0)))
		return -ENOMEM;
	/* Not before a whole timeout: the attach under way may take long, and nobody gives signs of life in it. */
	if (config.heartbeat_timeout_ns && !start_timer(TIMER_HEARTBEAT, config.heartbeat_timeout_ns, 0))
		return -ENOMEM;
	return 0;
}

SEC("struct_ops.s/init")
s32 BPF_PROG(temper_init)
{
	u32 slot, tier, cpu;
	s32 err;

	bpf_for(slot, NO_SLOT + 1, MAX_CGROUPS) {
		u32 index = slot;

		err = slot < RESERVED_SLOTS ? bpf_map_push_elem(&reserved_slots, &index, BPF_ANY) :
					      bpf_map_push_elem(&free_slots, &index, BPF_ANY);
		if (err)
			return err;
	}
	bpf_for(tier, 0, NR_TIERS) {
		err = scx_bpf_create_dsq(shared_queue(tier), -1);
		if (err)
			return err;
		bpf_for(cpu, 0, config.nr_cpus) {
			err = scx_bpf_create_dsq(pinned_queue(cpu, tier), -1);
			if (err)
				return err;
		}
	}
	return start_timers();
}

SEC("struct_ops/exit")
void BPF_PROG(temper_exit, struct scx_exit_info *ei)
{
	u32 zero = 0;

	left = true;
	struct temper_exit_info *e = bpf_map_lookup_elem(&exit_info, &zero);

	if (!e)
		return;
	bpf_probe_read_kernel_str(e->reason, sizeof(e->reason), ei->reason);
	bpf_probe_read_kernel_str(e->msg, sizeof(e->msg), ei->msg);
	e->exit_code = ei->exit_code;
	e->kind = ei->kind;
}

SEC(".struct_ops.link")
struct sched_ext_ops temper_ops = {
	.init_task = (void *)temper_init_task,
	.enable = (void *)temper_enable,
	.disable = (void *)temper_disable,
	.select_cpu = (void *)temper_select_cpu,
	.enqueue = (void *)temper_enqueue,
	.dispatch = (void *)temper_dispatch,
	.running = (void *)temper_running,
	.update_idle = (void *)temper_update_idle,
	.tick = (void *)temper_tick,
	.stopping = (void *)temper_stopping,
	.set_weight = (void *)temper_set_weight,
	.cgroup_init = (void *)temper_cgroup_init,
	.cgroup_exit = (void *)temper_cgroup_exit,
	.cgroup_move = (void *)temper_cgroup_move,
	.cgroup_set_weight = (void *)temper_cgroup_set_weight,
	.cgroup_set_bandwidth = (void *)temper_cgroup_set_bandwidth,
	.init = (void *)temper_init,
	.exit = (void *)temper_exit,
	.flags = SCX_OPS_ENQ_LAST | SCX_OPS_ENQ_EXITING | SCX_OPS_ENQ_MIGRATION_DISABLED,
	.timeout_ms = TEMPER_WATCHDOG_MS,
	.name = TEMPER_OPS_NAME,
};
