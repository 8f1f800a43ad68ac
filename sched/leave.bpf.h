/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Who has used up a limit goes on until it leaves the kernel, and waits there.
 */
#ifndef TEMPER_LEAVE_BPF_H
#define TEMPER_LEAVE_BPF_H

#include "state.bpf.h"

struct bpf_task_work {
	u64 opaque;
} __attribute__((aligned(8)));

struct bpf_map {
	u32 id;
};
typedef int (*bpf_task_work_callback_t)(struct bpf_map *map, void *key, void *value);

/* Since 6.18; since 7.0 by the shorter name. */
int bpf_task_work_schedule_resume_impl(struct task_struct *task, struct bpf_task_work *tw, void *map__map,
				       bpf_task_work_callback_t callback, void *aux__prog) __ksym __weak;
int bpf_task_work_schedule_resume(struct task_struct *task, struct bpf_task_work *tw, void *map__map,
				  bpf_task_work_callback_t callback) __ksym __weak;

enum { LEAVING = 4096 };
#define LONGEST_BEYOND (10 * MSEC)

struct leaving {
	struct bpf_task_work work;
	s32 pid;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, LEAVING);
	__type(key, u32);
	__type(value, struct leaving);
} leaving SEC(".maps");

/* The current task is on its way to user mode. */
static int has_left_kernel(struct bpf_map *map, void *key, void *value)
{
	struct task_state *t = task_state(bpf_get_current_task_btf());

	if (t && t->beyond_until) {
		t->leaves = true;
		scx_bpf_kick_cpu(bpf_get_smp_processor_id(), KICK_PREEMPT);
	}
	return 0;
}

static __always_inline bool tells_when_kernel_is_left(void)
{
	return bpf_ksym_exists(bpf_task_work_schedule_resume_impl);
}

static __noinline bool tell_when_kernel_is_left(struct task_struct *p)
{
	u32 slot = (u32)p->pid % LEAVING;
	struct leaving *l = bpf_map_lookup_elem(&leaving, &slot);
	s32 err = -1;

	if (!l)
		return false;
	if (bpf_ksym_exists(bpf_task_work_schedule_resume_impl))
		err = bpf_task_work_schedule_resume_impl(p, &l->work, &leaving, has_left_kernel, NULL);
	else if (bpf_ksym_exists(bpf_task_work_schedule_resume))
		err = bpf_task_work_schedule_resume(p, &l->work, &leaving, has_left_kernel);
	if (!err)
		l->pid = p->pid;
	return !err || l->pid == p->pid; /* it was asked before, and has not left yet */
}

/* Whoever may be in the kernel is not held, since it may have a lock. */
static __always_inline bool may_hold(struct task_struct *p, struct task_state *t, u64 now)
{
	if (t->leaves || !tells_when_kernel_is_left() || p->flags & PF_KTHREAD)
		return true;
	return t->beyond_until && p->se.sum_exec_runtime >= t->beyond_until;
}

/* Its limit is used up, and it runs: may it go on until it leaves the kernel? */
static __noinline bool leaves_kernel_first(struct task_struct *p, struct task_state *t, u64 now)
{
	if (t->leaves || p->flags & PF_KTHREAD)
		return false;
	if (t->beyond_until)
		return p->se.sum_exec_runtime < t->beyond_until;
	if (!tell_when_kernel_is_left(p))
		return false;
	t->beyond_until = p->se.sum_exec_runtime + LONGEST_BEYOND;
	return true;
}

#endif
