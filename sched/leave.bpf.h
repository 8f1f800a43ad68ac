/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Who has used up a limit goes on until it has left what it does in the kernel.
 *
 * Problem: a task that is throttled in the middle of a system call keeps what it has locked there. The owner of a mutex is
 * known, and unthrottled (inheritance.bpf.h). Those that read under an rwsem are not known, and hold up whoever wants to write
 * for as long as they are throttled.
 *
 * Method: who was interrupted in user mode has no lock of the kernel, and is throttled at once. Any other is asked for a
 * call on its way to user mode (task work), and goes on until then. The call interrupts it, and is where it waits. What it
 * uses meanwhile is a debt, which its cgroup pays first.
 *
 * Limits: one that has not left after LONGEST_BEYOND of CPU time is throttled where it is, and so are all where the kernel cannot
 * make that call (before 6.18), or saves no orig_ax (other machines than x86-64). Where its cgroup owes more than MUCH_OWED, it
 * has SHORT_BEYOND: else tasks that never leave, one after the other, would get on without an end. A signal that is delivered as
 * it leaves, and any exception (a page fault too), count as user mode. In the call a task may not migrate.
 */
#ifndef TEMPER_LEAVE_BPF_H
#define TEMPER_LEAVE_BPF_H

#include "limit.bpf.h"
#include "timer.bpf.h"

struct bpf_task_work {
	u64 opaque;
} __attribute__((aligned(8)));

/* libbpf drops a weak function in silence where one of its types is declared only. */
struct bpf_map {
	u32 id;
};
typedef int (*bpf_task_work_callback_t)(struct bpf_map *map, void *key, void *value);

/* Since 6.18; since 7.0 by the shorter name. */
int bpf_task_work_schedule_resume_impl(struct task_struct *task, struct bpf_task_work *tw, void *map__map,
				       bpf_task_work_callback_t callback, void *aux__prog) __ksym __weak;
int bpf_task_work_schedule_resume(struct task_struct *task, struct bpf_task_work *tw, void *map__map,
				  bpf_task_work_callback_t callback) __ksym __weak;

#define LONGEST_BEYOND (10 * MSEC)
#define SHORT_BEYOND MSEC
#define OUT_OF_CALL (MSEC / 100) /* a task that is in the call is in user mode by then */
#define HAS_LEFT 1 /* in beyond_until: less than any task has run for */

enum { MAX_LEAVING = 8192 };

struct leaving {
	struct bpf_task_work work;
};

/* By pid. Where there are more of them, the one that was asked first is forgotten, and asked again at the end of its turn. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, MAX_LEAVING);
	__type(key, s32);
	__type(value, struct leaving);
} leaving SEC(".maps");

/* The current task is on its way to user mode. */
static int has_left(struct bpf_map *map, void *key, void *value)
{
	struct task_state *t = task_state(bpf_get_current_task_btf());
	u32 cpu = bpf_get_smp_processor_id();

	if (t && t->beyond_until) {
		t->beyond_until = HAS_LEFT;
		/* Interrupted in the middle of this, it would be throttled in the RCU section that the kernel has around it. */
		bpf_preempt_disable();
		scx_bpf_kick_cpu(cpu, KICK_PREEMPT);
		bpf_preempt_enable();
	} else if (cpu_state(cpu)->section_began) {
		start_timer(TIMER_PROTECTED + cpu, OUT_OF_CALL, BPF_F_TIMER_CPU_PIN);
	}
	return 0;
}

/* False: it cannot be asked. */
static __noinline bool ask_to_tell(struct task_struct *p)
{
	struct leaving none = {}, *l;
	s32 pid = p->pid, err = -1;

	l = bpf_map_lookup_elem(&leaving, &pid);
	if (!l) {
		bpf_map_update_elem(&leaving, &pid, &none, 0);
		l = bpf_map_lookup_elem(&leaving, &pid);
	}
	if (!l)
		return false;
	if (bpf_ksym_exists(bpf_task_work_schedule_resume_impl))
		err = bpf_task_work_schedule_resume_impl(p, &l->work, &leaving, has_left, NULL);
	else if (bpf_ksym_exists(bpf_task_work_schedule_resume))
		err = bpf_task_work_schedule_resume(p, &l->work, &leaving, has_left);
	return !err || err == -EBUSY; /* it was asked before */
}

/* Was it interrupted in an RCU section that it has not ended? */
static __always_inline bool in_rcu_section(struct task_struct *p)
{
	return bpf_core_field_exists(p->rcu_read_unlock_special) && p->rcu_read_unlock_special.b.blocked;
}

/* Does it wait in the call, and nobody for it? */
static __always_inline bool waits_in_call(struct task_struct *p, struct task_state *t)
{
	return t->beyond_until == HAS_LEFT && !untrusted(p)->migration_pending && !in_rcu_section(p);
}

/* It goes on from the call, and will be elsewhere. */
static __always_inline void leave_call(struct task_state *t)
{
	if (t->beyond_until == HAS_LEFT)
		t->beyond_until = 0;
}

/* Was it in user mode when it was interrupted? */
static __always_inline bool left_user_mode(struct task_struct *p)
{
	struct pt_regs *regs = (void *)bpf_task_pt_regs(p);

	if (bpf_core_field_exists(regs->orig_ax))
		return (s64)BPF_CORE_READ(regs, orig_ax) < 0;
	return true;
}

/* It has used up its limit: may it go on nevertheless? */
static __noinline bool has_to_leave_first(struct task_struct *p, struct task_state *t)
{
	u64 ran = p->se.sum_exec_runtime, least_left;

	/* Workers of io_uring and vhost are threads that have no user mode. */
	if (p->flags & (PF_KTHREAD | PF_USER_WORKER) || left_user_mode(p))
		return false;
	if (!t->beyond_until)
		t->beyond_until = ran + LONGEST_BEYOND;
	least_left = owes_much(limit_of(t->cgroup)) ? LONGEST_BEYOND - SHORT_BEYOND : 0;
	return ran + least_left < t->beyond_until && ask_to_tell(p);
}

#endif
