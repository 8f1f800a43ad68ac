/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Who has used up a limit is throttled: it waits, for milliseconds.
 *
 * Problem: the limit has to be kept to the percent, by tasks that run for microseconds or for ever, on any number of
 * CPUs, while limits change and cgroups come and go; nobody may wait for longer than the limit explains, and
 * nobody may be lost.
 *
 * Method: a task is queued for a CPU while its cgroup, and all limited ones above it, have time left (limit.bpf.h).
 * Else it is throttled: it waits in a queue of the cgroup that has none, first come first served. As it begins to run it
 * takes a turn; a timer ends that. A cgroup that throttles tasks has a timer that unthrottles as many as it
 * has time for. In the mode LIMITS_GAP a CPU that finds nothing to do takes a throttled one, which then runs as background.
 *
 * Whether a task is throttled is said by task_state.queued alone. Who takes it out of there, a CPU that queues it anew
 * or the timer, does so by one atomic operation: change_queue() and retract_queued() are partners, and whoever comes second
 * finds nothing to take.
 *
 * Who is on the way out, was asked to stop, or holds up others that the limit does not bind (inheritance.bpf.h) is never
 * throttled: it pays later. One that is asked while it is throttled, or was interrupted in a section, is found by the next
 * round of looks (look.bpf.h). Who has been throttled for LONGEST_THROTTLE is unthrottled for a moment, since the kernel would
 * throw out a scheduler that keeps a task waiting for 30 s.
 *
 * Limits: a CPU that finds nothing to do looks for one that may run on it among the first MOST_PASSED that are throttled.
 * Among those that wait for one limit weights do not count. They count as active meanwhile: in the shares of
 * the tasks beside them, and where a fence is lent while critical is idle.
 */
#ifndef TEMPER_THROTTLE_BPF_H
#define TEMPER_THROTTLE_BPF_H

#include "handoff.bpf.h"
#include "leave.bpf.h"
#include "limit.bpf.h"
#include "progress.bpf.h"

#define LEAST_PAUSE (1 * MSEC) /* of the timer that unthrottles */
#define SHORT_PAUSE (MSEC / 8) /* where it has unthrottled MOST_AT_ONCE */
#define LONGEST_THROTTLE (10000 * MSEC)
#define LEAST_REST ((s64)MSEC / 50) /* a turn that has no more left is over */
#define USEC 1000ULL

enum { THROTTLE_QUEUES = 0x100000, MOST_AT_ONCE = 24, FEW = 8, MOST_PASSED = 32 };

struct limit_timer {
	struct bpf_timer timer;
	u64 read_at; /* its limit: kernel_limits.bpf.h */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_CGROUPS);
	__type(key, u32);
	__type(value, struct limit_timer);
} limit_timers SEC(".maps");

static __always_inline u64 throttle_queue(u32 index)
{
	return THROTTLE_QUEUES + index;
}

/* For whom others wait, or who is about to go, gets on whatever the limit is. */
static __noinline bool never_throttled(struct task_struct *p, struct task_state *t, u32 by)
{
	return duty(p, t) || boosted_beyond(p, t, by);
}

/* The limit that this task has to wait for; NO_SLOT: none, and it is counted among those that wait for a CPU. */
static __noinline u32 check_limit(struct task_struct *p, struct task_state *t, u64 now)
{
	u32 index = limit_of(t->cgroup), by;

	if (index == NO_SLOT || t->prepaid)
		return NO_SLOT;
	by = must_wait_for(index, now);
	if (by != NO_SLOT && !never_throttled(p, t, by) && !has_to_leave_first(p, t))
		return by;
	begin_admission(t, index);
	return NO_SLOT;
}

static void start_unthrottling(u32 index, u64 ns)
{
	struct limit_timer *slot = bpf_map_lookup_elem(&limit_timers, &index);

	if (slot && bpf_timer_start(&slot->timer, ns, 0))
		scheduler_error("cannot start the timer of limit %u", index);
}

/* Has it waited for longer than whoever a cgroup would unthrottle next? */
static __noinline bool comes_first(struct task_state *t, u32 by)
{
	struct bpf_iter_scx_dsq it;
	struct task_struct *next;
	bool first = false;

	if (bpf_iter_scx_dsq_new(&it, throttle_queue(by), 0) == 0 && (next = bpf_iter_scx_dsq_next(&it))) {
		struct task_state *its = task_state(next);

		first = its && (s64)(t->throttled_at - its->throttled_at) < 0;
	}
	bpf_iter_scx_dsq_destroy(&it);
	return first;
}

static void throttle(struct task_struct *p, struct task_state *t, u32 by, u64 now, u64 enq_flags)
{
	queue_position(p, t, now);
	/* Others took the time that it was unthrottled for, or the kernel took it out: for a new priority, or in leave.bpf.h's call. */
	if (!t->throttled_at)
		t->throttled_at = now;
	else if (comes_first(t, by))
		enq_flags |= ENQ_HEAD;
	t->queued_cpu = scx_bpf_task_cpu(p);
	t->queued = QUEUED_THROTTLED + by;
	if (begin_throttle(by, now))
		start_unthrottling(by, gaps_beyond(by) ? 0 : LEAST_PAUSE);
	mark_waiting(p->pid);
	dsq_insert(p, throttle_queue(by), slice_ns[TIER_STANDARD], enq_flags);
}

/* Of a task that is found in a throttle queue: false where another has changed it. Partner: retract_queued(). */
static __always_inline bool change_queue(struct task_state *t, u32 before, u32 next)
{
	return ordered_compare_swap(&t->queued, before, next) == before;
}

/*
 * Move a task out of the throttle queue that the iterator stands in, to where task_state.queued says that it belongs. Where
 * it does not succeed, another CPU has just taken it out, and will change `queued` itself; should it come back to
 * this queue with a mark that does not fit, the next who finds it here moves it.
 */
static __noinline bool follow_mark(struct bpf_iter_scx_dsq *it, struct task_struct *p, struct task_state *t)
{
	u32 mark = t->queued, tier = queued_tier(mark);

	/* As queue_position(), which throttle() has asked, has it. */
	u64 oldest = tier_clock[tier] - slice_ns[tier], vtime = p->scx.dsq_vtime;

	if ((s64)(vtime - oldest) < 0)
		vtime = oldest;
	if (queued_kind(mark) == QUEUED_SHARED)
		return dsq_move_vtime(it, p, shared_queue(tier), vtime);
	if (queued_kind(mark) == QUEUED_PINNED)
		return dsq_move_vtime(it, p, pinned_queue(t->queued_cpu, tier), vtime);
	return mark >= QUEUED_THROTTLED && dsq_move(it, p, throttle_queue(mark - QUEUED_THROTTLED));
}

/* Has it waited in vain for so long, or does somebody wait for it? */
static __always_inline bool may_go_now(struct task_struct *p, struct task_state *t, u32 by, u64 now)
{
	return asked_to_end(p, t) || boosted_beyond(p, t, by) || (s64)(now - t->throttled_at) > (s64)LONGEST_THROTTLE;
}

/* Take the time of its next turn now: when it gets to run, others might have. */
static __always_inline void prepay(struct task_state *t, u64 now)
{
	u32 index = limit_of(t->cgroup);
	s64 time = index == NO_SLOT ? 0 : time_left(index, now);

	if (time <= 0)
		return;
	pay_limits(index, -time, 0);
	t->prepaid_by = index;
	t->prepaid = time;
}

/* A task is throttled by `index` no longer: it waits for a CPU, or for a limit above, now. */
static __noinline bool unthrottle_task(struct bpf_iter_scx_dsq *it, struct task_struct *p, struct task_state *t, u32 index, u64 now)
{
	bool pinned = p->nr_cpus_allowed == 1 || may_not_migrate(p);
	u64 waited = now - t->throttled_at;
	u32 above = limit_above(index);

	if (t->queued != QUEUED_THROTTLED + index)
		return follow_mark(it, p, t);
	if (above != NO_SLOT)
		above = may_go_now(p, t, above, now) ? NO_SLOT : must_wait_for(above, now);
	if (above != NO_SLOT) {
		if (!change_queue(t, QUEUED_THROTTLED + index, QUEUED_THROTTLED + above))
			return false;
		if (begin_throttle(above, now))
			start_unthrottling(above, LEAST_PAUSE);
	} else {
		u32 mark = queued_mark(pinned, t->tier % NR_TIERS);
		s32 cpu = t->queued_cpu;

		/* Counted before others can take it out. */
		count_queued(cpu, mark, 1);
		if (!change_queue(t, QUEUED_THROTTLED + index, mark)) {
			count_queued(cpu, mark, -1);
			return false;
		}
		t->runnable_at = now;
		tell_arrival(p, queued_tier(mark), pinned);
		prepay(t, now);
	}
	end_throttle(index, waited);
	/* Unthrottled without time: the next wait is a new one. */
	if ((s64)waited > (s64)LONGEST_THROTTLE)
		t->throttled_at = 0;
	return follow_mark(it, p, t);
}

/* How much a cgroup should have before it unthrottles a task: the slower its quota comes, the smaller the turns. */
static __always_inline u64 worth_waiting(struct temper_limit *l, u32 index)
{
	u64 share = (rate_of(l) * 4 * MSEC) >> 20, turn = turn_of(index);

	return share > turn ? turn : share < MSEC / 4 ? MSEC / 4 : share;
}

/*
 * How much it should have before it unthrottles anybody: enough for as many as may run at once at this rate, and one more.
 * Threads of one program often wait for each other, and one that runs alone spends its turn on that.
 */
static __always_inline s64 worth_beginning(struct temper_limit *l, u32 index)
{
	u32 at_once = 1 + (rate_of(l) >> 20), gang = l->throttled < at_once ? l->throttled : at_once;
	s64 worth = worth_waiting(l, index) * gang, most = (u64)capacity(l) / 2;

	return worth < most ? worth : most;
}

/* Unthrottle the first task of a cgroup, if there is time for it. Returns its pid; 0: nobody may go. */
__noinline s32 unthrottle_one(u32 index, u64 now)
{
	struct temper_limit *l = limit_at(index);
	struct bpf_iter_scx_dsq it;
	struct task_struct *p;
	s32 pid = 0;

	if (!l)
		return 0;
	fill(index, now);
	if (l->quota_ns && l->left_ns < (s64)worth_waiting(l, index) * (1 + l->admitted))
		return 0;
	bpf_rcu_read_lock();
	if (bpf_iter_scx_dsq_new(&it, throttle_queue(index), 0) == 0) {
		/* One that another is just taking out cannot be moved: the next may go in its place. */
		for (int i = 0; !pid && i < FEW && (p = bpf_iter_scx_dsq_next(&it)); i++) {
			struct task_state *t = task_state(p);

			if (t && unthrottle_task(&it, p, t, index, now))
				pid = p->pid;
		}
	}
	bpf_iter_scx_dsq_destroy(&it);
	bpf_rcu_read_unlock();
	return pid;
}

/* Of a task that may not wait: somebody waits for what it holds, say. */
__noinline bool unthrottle_holder(s32 pid, u32 index)
{
	struct task_struct *p = bpf_task_from_pid(pid);
	struct bpf_iter_scx_dsq it;
	struct task_state *t;
	bool gone = false;

	if (!p)
		return false;
	t = task_state(p);
	/* Marked as throttled it is a moment before the kernel has put it there, and from elsewhere it cannot be moved. */
	if (BPF_CORE_READ(p, scx.dsq, id) != throttle_queue(index))
		t = NULL;
	bpf_rcu_read_lock();
	if (bpf_iter_scx_dsq_new(&it, throttle_queue(index), 0) == 0 && t)
		gone = unthrottle_task(&it, p, t, index, clock_ns());
	bpf_iter_scx_dsq_destroy(&it);
	bpf_rcu_read_unlock();
	bpf_task_release(p);
	return gone;
}

/* When to look again, in ns: as soon as there is enough time. */
static u64 next_look(struct temper_limit *l, u32 index)
{
	s64 missing = worth_beginning(l, index) - l->left_ns;
	u64 pause = LEAST_PAUSE, most = LOOK_PERIOD, rate = rate_of(l);

	if (missing > 0 && rate)
		pause = ((u64)missing << 20) / rate;
	/* Each CPU that has become idle meanwhile is asked anew. */
	if (l->mode == LIMITS_GAP)
		most = SHORTEST_TURN;
	return pause < LEAST_PAUSE ? LEAST_PAUSE : pause > most ? most : pause;
}

/* A CPU is idle, and somebody is throttled who may run in gaps. */
static __always_inline void offer_gaps(u32 throttled)
{
	u32 cpu;

	bpf_for(cpu, 0, config.nr_cpus) {
		if (!throttled)
			break;
		if (shut_cpu(IDLE, cpu)) {
			scx_bpf_kick_cpu(cpu, KICK_IDLE);
			throttled--;
		}
	}
}

static int unthrottle(void *map, u32 *index, struct limit_timer *slot)
{
	struct temper_limit *l = limit_at(*index);
	u64 now = clock_ns();
	bool throttled = l && l->throttled;
	u32 i, most = MOST_AT_ONCE;
	bool more = true; /* who may go, perhaps */

	if (left || !l)
		return 0;
	if ((s64)(now - slot->read_at) > (s64)READ_PERIOD) {
		slot->read_at = now;
		read_limit(*index);
	}
	fill(*index, now);
	if (l->quota_ns && l->left_ns < worth_beginning(l, *index)) {
		most = 0;
		more = false;
	}
	bpf_for(i, 0, most) {
		s32 pid = unthrottle_one(*index, now);

		if (!pid) {
			more = false;
			break;
		}
		claim_for(pid);
	}
	if (throttled && (s64)(now - l->throttled_since) > 0)
		relaxed_add(&l->throttled_ns, now - l->throttled_since);
	l->throttled_since = now;
	/*
	 * Partner: begin_throttle(), which starts the timer where it finds that nobody was throttled. Who could not be moved, and
	 * stands here with another mark, is moved by the next who looks.
	 */
	if (!*(volatile u32 *)&l->throttled && !scx_bpf_dsq_nr_queued(throttle_queue(*index)))
		return 0;
	if (gaps_beyond(*index)) {
		set_throttling(*index); /* in this mode since it has throttled them */
		offer_gaps(l->throttled);
	}
	/* There may be time for more of them, who wait for no more than that this ran for long enough. */
	bpf_timer_start(&slot->timer, more ? SHORT_PAUSE : next_look(l, *index), 0);
	return 0;
}

/* A cgroup that throttles tasks, from this word of `throttling` on; NO_SLOT: none does. */
__noinline u32 find_throttling(u32 from)
{
	for (u32 i = 0; i < SLOT_WORDS; i++) {
		u32 w = (from + i) % SLOT_WORDS;
		u64 word = throttling[w];

		if (word)
			return w * 64 + __builtin_ctzll(word);
	}
	return NO_SLOT;
}

/* Take the first task that a cgroup throttles and that may run on this CPU. */
__noinline bool take_from_throttled(u32 index, s32 cpu, u64 now)
{
	struct bpf_iter_scx_dsq it;
	struct task_struct *p;
	bool taken = false;

	bpf_rcu_read_lock();
	if (bpf_iter_scx_dsq_new(&it, throttle_queue(index), 0) == 0) {
		for (int i = 0; i < MOST_PASSED && (p = bpf_iter_scx_dsq_next(&it)); i++) {
			struct task_state *t = task_state(p);

			if (!t || !may_run_on(p, cpu) || p->migration_disabled || !gaps_beyond(limit_of(t->cgroup)) ||
			    !change_queue(t, QUEUED_THROTTLED + index, QUEUED_TAKEN))
				continue;
			t->in_gap = true;
			taken = dsq_move(&it, p, DSQ_LOCAL);
			if (taken || !change_queue(t, QUEUED_TAKEN, QUEUED_THROTTLED + index))
				end_throttle(index, now - t->throttled_at);
			if (taken)
				break;
			t->in_gap = false;
		}
	}
	bpf_iter_scx_dsq_destroy(&it);
	bpf_rcu_read_unlock();
	return taken;
}

/* This CPU has nothing else to do: may somebody run on it who has used up a limit? The cgroups have turns. */
__noinline bool take_throttled(s32 cpu, u64 now)
{
	static u32 next;
	u32 index;
	struct temper_limit *l;

	if (!nr_throttling)
		return false;
	index = find_throttling(next);
	l = limit_at(index);
	if (index == NO_SLOT || !l)
		return false;
	next = index / 64 + 1;
	if (take_from_throttled(index, cpu, now))
		return true;
	if (l->throttled && gaps_beyond(index))
		return false;
	/* Partner: begin_throttle(), which raises `throttled` first. */
	clear_throttling(index);
	if (*(volatile u32 *)&l->throttled && gaps_beyond(index))
		set_throttling(index);
	return false;
}

static int turn_is_over(void *map, u32 *index, struct timer_slot *slot)
{
	u32 cpu = *index - TIMER_TURN;
	struct cpu_state *c = cpu_state(cpu);
	s64 rest = c->turn_ends - clock_ns();

	c->turn_timer = 0;
	if (!c->turn_ends)
		return 0;
	if (rest > LEAST_REST) {
		c->turn_timer = c->turn_ends;
		bpf_timer_start(&slot->timer, rest, BPF_F_TIMER_CPU_PIN);
	} else {
		scx_bpf_kick_cpu(cpu, KICK_PREEMPT);
	}
	return 0;
}

/* A turn is over: must the task wait? Whoever waits for the same is unthrottled by the timer, which finds a CPU for it, too. */
static __noinline bool turn_must_end(struct task_struct *p, struct task_state *t, u64 now)
{
	u32 index = limit_of(t->cgroup), by = index == NO_SLOT ? NO_SLOT : must_wait_for(index, now);

	if (by != NO_SLOT && !never_throttled(p, t, by) && !has_to_leave_first(p, t))
		return true;
	leave_call(t);
	return false;
}

/* A task begins to run here, or goes on: for how long may it? */
static __noinline void begin_turn(struct task_struct *p, struct task_state *t, s32 cpu, u64 now)
{
	struct cpu_state *c = cpu_state(cpu);
	u32 index = limit_of(t->cgroup);
	s64 time;

	if (index == NO_SLOT) {
		t->throttled_at = 0;
		t->beyond_until = 0;
		return;
	}
	if (t->prepaid && t->prepaid_by != index) {
		pay_limits(t->prepaid_by, t->prepaid, 0);
		t->prepaid = 0;
	}
	time = t->prepaid;
	if (!time && !t->in_gap) {
		time = time_left(index, now);
		if (time > 0)
			pay_limits(index, -time, 0);
	}
	t->prepaid = 0;
	t->limited = index;
	t->granted = time > 0 ? time : 0;
	/* What was counted while it was taken off the CPU belongs to this turn. More is of a time without a limit. */
	if (p->se.sum_exec_runtime - t->turn_exec > QUANTUM)
		t->turn_exec = p->se.sum_exec_runtime;
	if (time <= 0 && !t->in_gap && !c->boosted_section && !never_throttled(p, t, -time) && !has_to_leave_first(p, t)) {
		scx_bpf_kick_cpu(cpu, KICK_PREEMPT);
		return;
	}
	if (time > 0)
		t->beyond_until = 0;
	leave_call(t);
	t->throttled_at = 0;
	c->turn_ends = now + (t->granted ?: SHORTEST_TURN);
	/* One that comes earlier, for a turn that was cut short, starts it anew. */
	if (c->turn_timer && (s64)(c->turn_ends - c->turn_timer) >= 0)
		return;
	c->turn_timer = c->turn_ends;
	if (!start_timer(TIMER_TURN + cpu, t->granted ?: SHORTEST_TURN, BPF_F_TIMER_CPU_PIN))
		scx_bpf_kick_cpu(cpu, KICK_PREEMPT);
}

/* Pay for what the task has used up to now. Its turn is over once it leaves the CPU, and until then it goes on. */
static __noinline void pay_turn(struct task_struct *p, struct task_state *t)
{
	u64 used = p->se.sum_exec_runtime - t->turn_exec;
	struct temper_limit *l = limit_at(t->limited);

	if (l && t->in_gap)
		relaxed_add(&l->beyond_ns, used);
	else if (l && used > t->granted)
		relaxed_add(&l->overrun_ns, used - t->granted);
	pay_limits(t->limited, t->in_gap ? 0 : (s64)t->granted - (s64)used, used);
	t->granted = 0;
	t->turn_exec += used;
}

static __always_inline void end_turn(struct task_struct *p, struct task_state *t, s32 cpu)
{
	pay_turn(p, t);
	cpu_state(cpu)->turn_ends = 0;
	t->limited = NO_SLOT;
}

/* A cgroup has come. */
static s32 open_limit(struct cgroup *cgrp, struct scx_cgroup_init_args *args)
{
	u32 index = slot_of(cgrp);
	struct limit_timer *timer = bpf_map_lookup_elem(&limit_timers, &index);
	struct cgroup_slot *s = slot_at(index);
	struct temper_limit *l = limit_at(index);
	s32 err;

	if (!s || !l || !timer || s->id != untrusted(cgrp)->kn->id)
		return 0; /* it shares its parent's slot */
	err = scx_bpf_create_dsq(throttle_queue(index), -1);
	if (err)
		return err;
	err = bpf_timer_init(&timer->timer, &limit_timers, CLOCK_MONOTONIC);
	if (err && err != -EBUSY) /* of a cgroup that is gone */
		return err;
	err = bpf_timer_set_callback(&timer->timer, unthrottle);
	if (err)
		return err;
	__builtin_memset(l, 0, sizeof(*l));
	l->cgroup = s->id;
	if (config.read_limits) {
		s->cgroup = (u64)cgrp;
		read_limit(index);
	} else if (bpf_core_field_exists(args->bw_quota_us)) {
		set_limit(index, quota_ns(args->bw_quota_us), args->bw_period_us * USEC, args->bw_burst_us * USEC);
	}
	return 0;
}

static void change_limit(struct cgroup *cgrp, u64 period_us, u64 quota_us, u64 burst_us)
{
	u32 index = slot_of(cgrp);
	struct cgroup_slot *s = slot_at(index);

	if (!s || s->id != untrusted(cgrp)->kn->id)
		return;
	set_limit(index, quota_ns(quota_us), period_us * USEC, burst_us * USEC);
	start_unthrottling(index, 0);
}

static void close_limit(struct cgroup *cgrp)
{
	u32 index = slot_of(cgrp);
	struct cgroup_slot *s = slot_at(index);

	if (!s || index == NO_SLOT || s->id != untrusted(cgrp)->kn->id)
		return;
	s->cgroup = 0;
	set_limit(index, 0, 0, 0);
	scx_bpf_destroy_dsq(throttle_queue(index));
}

#endif
