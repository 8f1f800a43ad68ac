/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Which CPUs have real-time tasks taken?
 *
 * Problem: one SCHED_FIFO task that polls keeps all tasks of ours from its CPU. Before 7.x the kernel keeps a part of
 * each CPU for the fair class only. After 30 s the watchdog of sched_ext ejects the scheduler.
 *
 * Method: for each CPU, free_until is the last moment at which a task of ours ran there, or nothing did. The
 * loader runs look_at_cpus() some times a second. It tells for how long the CPU has not been free, and which real-time
 * task is first in its run queue. The loader then lowers that task for a turn: RT throttling (rt_throttle.c). The run queue
 * is read and not its current task: on the CPU where the loader itself runs, that would be the loader.
 *
 *   time    0 ms            950 ms          1000 ms
 *   CPU 1   ours stops      the hog runs    looks[1]: taken for 1000 ms by the hog, and a task of ours waits
 *
 * A task that has the priority of one that waits for its lock stands there, too: then it is that one which is told of,
 * and lowered.
 *
 * Limits: a task that sleeps for a moment before a second is over is not found, and leaves others that moment. The run
 * queue is read without its lock, so what is found may have left. The loader compares id and start time in /proc before
 * it does anything. SCHED_DEADLINE tasks are not looked for: the kernel bounds what they use.
 */
#ifndef TEMPER_RT_HOGS_BPF_H
#define TEMPER_RT_HOGS_BPF_H

#include "gap.bpf.h"
#include "timer.bpf.h"

enum { LONGEST_LINE = 8, MOST_RT_THROTTLED = 1024 };

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, MAX_CPUS);
	__type(key, u32);
	__type(value, struct temper_look);
} looks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, MAX_CPUS);
	__type(key, u32);
	__type(value, struct temper_hog);
} hogs SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MOST_RT_THROTTLED);
	__type(key, u32);
	__type(value, struct temper_rt_throttled);
} rt_throttled SEC(".maps");

/* Its turn of the CPU is over: as long as it is lowered it has what nobody else wants, whatever its cgroup. */
static __always_inline bool is_rt_throttled(struct task_struct *p)
{
	u32 id = p->pid;

	return p->policy == SCHED_IDLE && bpf_map_lookup_elem(&rt_throttled, &id);
}

/* Who is forked by a task that is RT-throttled is to have what the parent had, once the parent has it back. */
static __always_inline void inherit_rt_throttle(struct task_struct *child)
{
	u32 parent = bpf_get_current_task_btf()->pid, id = child->pid;
	struct temper_rt_throttled *of, mine;

	if (child->policy != SCHED_IDLE)
		return;
	of = bpf_map_lookup_elem(&rt_throttled, &parent);
	/* With its policy back a parent is idle by its own will. */
	if (!of || (of->given_back && bpf_get_current_task_btf()->policy == SCHED_IDLE))
		return;
	mine = *of;
	mine.given_back = 0;
	mine.start = bpf_ktime_get_boot_ns();
	mine.inherited = true;
	if (of->policy & SCHED_RESET_ON_FORK) {
		mine.policy = SCHED_NORMAL;
		mine.priority = 0;
	}
	bpf_map_update_elem(&rt_throttled, &id, &mine, BPF_ANY);
}

static __always_inline bool is_group(u64 entity)
{
	struct sched_rt_entity___group *e = (void *)entity;

	return bpf_core_field_exists(e->my_q) && BPF_CORE_READ(e, my_q);
}

/* Address of the first real-time task of one priority that belongs to the kernel, or to user space but not to us; 0: none. */
__noinline u64 first_in_line(u64 line, s32 us, bool of_kernel)
{
	const u64 offset = bpf_core_field_offset(struct task_struct, rt) + bpf_core_field_offset(struct sched_rt_entity, run_list);
	u64 entry = (u64)BPF_CORE_READ((struct list_head *)line, next);
	u32 i;

	bpf_for(i, 0, LONGEST_LINE) {
		struct task_struct *p = (void *)(entry - offset);

		if (!entry || entry == line)
			return 0;
		if (!is_group(entry) && BPF_CORE_READ(p, tgid) != us && !(BPF_CORE_READ(p, flags) & PF_KTHREAD) != of_kernel)
			return (u64)p;
		entry = (u64)BPF_CORE_READ((struct list_head *)entry, next);
	}
	return 0;
}

/* The first of any priority. */
__noinline u64 first_real_time(u64 rt, s32 us, bool of_kernel)
{
	struct rt_rq *queue = (void *)rt;
	u64 lines = (u64)&queue->active.queue, found;
	u64 some[2] = {};
	u32 i;

	bpf_probe_read_kernel(some, sizeof(some), &queue->active.bitmap);
	bpf_for(i, 0, MAX_RT_PRIO) {
		if (!(some[i / 64 % 2] >> i % 64 & 1))
			continue;
		found = first_in_line(lines + i * bpf_core_type_size(struct list_head), us, of_kernel);
		if (found)
			return found;
	}
	return 0;
}

/* The verifier lets nobody compute with the address of a run queue; what comes out of memory is a number. One loader runs this. */
static __always_inline u64 real_time_queue(struct rq *rq)
{
	static volatile u64 address;

	address = (u64)&rq->rt;
	return address;
}

static __always_inline bool waits_for(struct cpu_state *c, u32 cpu)
{
	if (scx_bpf_dsq_nr_queued(DSQ_LOCAL_ON | cpu) > 0)
		return true;
	for (u32 tier = 0; tier < NR_TIERS; tier++)
		if (c->pinned[tier] || within_reach(tier, cpu))
			return true;
	return false;
}

/* Whose priority it has, if it has none of its own. */
static __always_inline struct task_struct *donor_of(struct task_struct *p)
{
	u32 policy = BPF_CORE_READ(p, policy);

	if (policy == SCHED_FIFO || policy == SCHED_RR || !bpf_core_field_exists(p->pi_top_task))
		return NULL;
	return BPF_CORE_READ(p, pi_top_task);
}

__noinline int look_at_cpu(u32 cpu)
{
	struct temper_look *look = bpf_map_lookup_elem(&looks, &cpu);
	struct rq *rq = bpf_per_cpu_ptr(&runqueues, cpu);
	s32 us = bpf_get_current_pid_tgid() >> 32;
	struct cpu_state *c = cpu_state(cpu);
	u64 now = clock_ns(), queue, p;

	if (!look)
		return 0;
	look->taken_ns = 0;
	look->tid = 0;
	if (!rq || !BPF_CORE_READ(rq, rt.rt_nr_running))
		return 0;
	queue = real_time_queue(rq);
	p = first_real_time(queue, us, false) ?: first_real_time(queue, us, true);
	if (!p)
		return 0;
	/* Nothing has been heard of it since the scheduler was attached: count from here on. */
	if (!c->free_until || c->running)
		c->free_until = now;
	struct task_struct *task = (void *)p, *donor = donor_of(task);

	look->donor = !!donor;
	if (donor)
		task = donor;
	look->start = BPF_CORE_READ(task, start_boottime);
	look->process = BPF_CORE_READ(task, tgid);
	look->kernel = !!(BPF_CORE_READ(task, flags) & PF_KTHREAD);
	look->waiting = waits_for(c, cpu);
	BPF_CORE_READ_STR_INTO(&look->comm, task, comm);
	look->tid = BPF_CORE_READ(task, pid);
	if ((s64)(now - c->free_until) > 0)
		look->taken_ns = now - c->free_until;
	return 0;
}

SEC("syscall")
int look_at_cpus(void *unused)
{
	u32 cpu;

	bpf_rcu_read_lock();
	bpf_for(cpu, 0, config.nr_cpus)
		if (!left)
			look_at_cpu(cpu);
	bpf_rcu_read_unlock();
	/* To the loader, in a PID namespace of its own, its id may be another: then it cannot use the ids that it reads. */
	return left ? 0 : bpf_get_current_pid_tgid() >> 32;
}

#endif
