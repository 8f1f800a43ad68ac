/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The part of the kernel's types and functions that the scheduler touches, in
 * place of a generated vmlinux.h of 3 MB. Records are relocated at load (CO-RE),
 * so only names and types matter here, not offsets; enum values are looked up in
 * the running kernel by bpf_core_enum_value().
 */
#ifndef TEMPER_KERN_H
#define TEMPER_KERN_H

#include <stdbool.h>

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int s32;
typedef long long s64;
typedef u8 __u8;
typedef u16 __u16, __be16, __le16;
typedef u32 __u32, __be32, __wsum;
typedef u64 __u64, __be64;
typedef signed char __s8;
typedef short __s16;
typedef s32 __s32;
typedef s64 __s64;

enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_QUEUE = 22,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
	BPF_MAP_TYPE_CGRP_STORAGE = 32,
};
enum { BPF_F_NO_PREALLOC = 1, BPF_F_MMAPABLE = 1 << 10, BPF_LOCAL_STORAGE_GET_F_CREATE = 1, BPF_ANY = 0 };
enum { CLOCK_MONOTONIC = 1, ENOMEM = 12, EBUSY = 16 };
enum { PF_EXITING = 0x00000004, PF_USER_WORKER = 0x00004000, PF_KTHREAD = 0x00200000 };
enum { SCHED_NORMAL = 0, SCHED_FIFO = 1, SCHED_RR = 2, SCHED_IDLE = 5, SCHED_RESET_ON_FORK = 0x40000000 }; /* of a policy, for user space */
enum { MAX_RT_PRIO = 100, DEFAULT_PRIO = 120 }; /* static_prio of nice 0 */
enum { SIGSTOP = 19, SIGNAL_GROUP_EXIT = 0x4, BPF_F_TIMER_CPU_PIN = 2 };
/* Stop, ptrace trap and cgroup freeze, asked for and not yet obeyed (JOBCTL_*_PENDING and JOBCTL_TRAP_*). */
#define JOBCTL_ASKED (1UL << 17 | 1UL << 19 | 1UL << 20 | 1UL << 23)

struct bpf_spin_lock {
	u32 val;
};
struct bpf_timer {
	u64 opaque[2];
} __attribute__((aligned(8)));
struct bpf_iter_num {
	u64 opaque[1];
} __attribute__((aligned(8)));
struct bpf_iter_scx_dsq {
	u64 opaque[6];
} __attribute__((aligned(8)));

enum scx_exit_kind { SCX_EXIT_NONE };

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct cpumask {
	unsigned long bits[128];
};
struct sched_entity {
	u64 sum_exec_runtime;
};
struct list_head {
	struct list_head *next;
};
struct sched_rt_entity {
	struct list_head run_list;
};
/* Of kernels that have groups of real-time tasks. */
struct sched_rt_entity___group {
	struct rt_rq *my_q;
};
struct scx_dispatch_q {
	u64 id;
};
struct sched_ext_entity {
	struct scx_dispatch_q *dsq;
	u32 flags;
	u32 weight;
	u64 slice;
	u64 dsq_vtime;
};
typedef struct {
	s64 counter;
} atomic_long_t;
struct mutex {
	atomic_long_t owner;
	struct list_head wait_list;
};
struct rw_semaphore {
	atomic_long_t owner;
	struct list_head wait_list;
};
/* Since 7.1 the line is a ring without a head. */
struct mutex___71 {
	struct mutex_waiter *first_waiter;
};
struct rw_semaphore___71 {
	struct rwsem_waiter *first_waiter;
};
struct mutex_waiter { /* its list is its first member, as that of rwsem_waiter */
	struct task_struct *task;
};
struct rwsem_waiter {
	struct task_struct *task;
};
struct swait_queue {
	struct task_struct *task;
	struct list_head task_list;
};
struct swait_queue_head {
	struct list_head task_list;
};
struct completion {
	struct swait_queue_head wait;
};
typedef struct {
	unsigned long sig[1];
} sigset_t;
struct sigpending {
	sigset_t signal;
};
struct signal_struct {
	unsigned int flags;
	int nr_threads;
	struct sigpending shared_pending;
};
union rcu_special {
	struct {
		u8 blocked;
	} b;
};
struct task_struct {
	unsigned int flags;
	unsigned long jobctl;
	struct signal_struct *signal;
	struct sigpending pending;
	struct completion *vfork_done;
	struct task_struct *real_parent;
	int pid;
	int prio;
	int static_prio;
	int nr_cpus_allowed;
	const struct cpumask *cpus_ptr;
	unsigned short migration_disabled;
	struct set_affinity_pending *migration_pending; /* somebody waits to move it */
	union rcu_special rcu_read_unlock_special;
	struct sched_entity se;
	struct sched_rt_entity rt;
	struct sched_ext_entity scx;
	unsigned int policy;
	unsigned int rt_priority;
	struct task_struct *pi_top_task; /* of those that wait for its locks */
	int tgid;
	u64 start_boottime;
	char comm[16];
};
struct pt_regs {
	unsigned long orig_ax;
};
struct rt_prio_array {
	unsigned long bitmap[2];
	struct list_head queue[MAX_RT_PRIO];
};
struct rt_rq {
	struct rt_prio_array active;
	unsigned int rt_nr_running;
};
struct rq {
	struct rt_rq rt;
};
typedef struct {
	u32 val;
} kuid_t;
struct kernfs_iattrs {
	kuid_t ia_uid;
};
struct kernfs_node {
	const char *name;
	u64 id;
	struct kernfs_iattrs *iattr; /* NULL: root's, as made */
};
struct cgroup {
	int level;
	struct kernfs_node *kn;
	struct cgroup_subsys_state *subsys[2]; /* there are more */
	struct cgroup *ancestors[];
};
struct cgroup_subsys_state {
	struct cgroup *cgroup;
};
struct cfs_bandwidth {
	s64 period;
	u64 quota, burst;
};
struct task_group {
	struct cgroup_subsys_state css;
	struct cfs_bandwidth cfs_bandwidth;
};
struct scx_init_task_args {
	bool fork;
	struct cgroup *cgroup;
};
struct scx_cgroup_init_args {
	u32 weight;
	u64 bw_period_us, bw_quota_us, bw_burst_us; /* since 6.17 */
};
struct scx_exit_info {
	enum scx_exit_kind kind;
	s64 exit_code;
	const char *reason;
	char *msg;
};
/* Members that this kernel does not know and that are unset are dropped by libbpf. */
struct sched_ext_ops {
	s32 (*select_cpu)(struct task_struct *p, s32 prev_cpu, u64 wake_flags);
	void (*enqueue)(struct task_struct *p, u64 enq_flags);
	void (*dispatch)(s32 cpu, struct task_struct *prev);
	void (*tick)(struct task_struct *p);
	void (*running)(struct task_struct *p);
	void (*stopping)(struct task_struct *p, bool runnable);
	void (*set_weight)(struct task_struct *p, u32 weight);
	void (*update_idle)(s32 cpu, bool idle);
	s32 (*init_task)(struct task_struct *p, struct scx_init_task_args *args);
	void (*enable)(struct task_struct *p);
	void (*disable)(struct task_struct *p);
	s32 (*cgroup_init)(struct cgroup *cgrp, struct scx_cgroup_init_args *args);
	void (*cgroup_exit)(struct cgroup *cgrp);
	void (*cgroup_move)(struct task_struct *p, struct cgroup *from, struct cgroup *to);
	void (*cgroup_set_weight)(struct cgroup *cgrp, u32 weight);
	void (*cgroup_set_bandwidth)(struct cgroup *cgrp, u64 period_us, u64 quota_us, u64 burst_us);
	s32 (*init)(void);
	void (*exit)(struct scx_exit_info *info);
	u64 flags;
	u32 timeout_ms;
	u64 hotplug_seq;
	char name[128];
};
#pragma clang attribute pop

/* Enums by their kernel names; the values are only what 6.18 has. */
enum scx_public_consts { SCX_SLICE_DFL = 20000000 };
enum scx_dsq_id_flags { SCX_DSQ_LOCAL = 0x8000000000000002ULL, SCX_DSQ_LOCAL_ON = 0xc000000000000000ULL };
enum scx_kick_flags { SCX_KICK_IDLE = 1, SCX_KICK_PREEMPT = 2 };
enum scx_enq_flags { SCX_ENQ_HEAD = 16, SCX_ENQ_PREEMPT = 1ULL << 32 };
enum scx_ent_flags { SCX_TASK_QUEUED = 1 };
enum cgroup_subsys_id { cpu_cgrp_id = 1 };
enum scx_wake_flags { SCX_WAKE_SYNC = 16 };
enum scx_ops_flags { SCX_OPS_ENQ_LAST = 1 << 1, SCX_OPS_ENQ_EXITING = 1 << 2, SCX_OPS_ENQ_MIGRATION_DISABLED = 1 << 4 };

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "atomic.h"

#define KERNEL_VALUE(type, name) bpf_core_enum_value(enum type, name)
#define DSQ_LOCAL KERNEL_VALUE(scx_dsq_id_flags, SCX_DSQ_LOCAL)
#define DSQ_LOCAL_ON KERNEL_VALUE(scx_dsq_id_flags, SCX_DSQ_LOCAL_ON)
#define KICK_IDLE KERNEL_VALUE(scx_kick_flags, SCX_KICK_IDLE)
#define KICK_PREEMPT KERNEL_VALUE(scx_kick_flags, SCX_KICK_PREEMPT)
#define ENQ_HEAD KERNEL_VALUE(scx_enq_flags, SCX_ENQ_HEAD)
#define ENQ_PREEMPT KERNEL_VALUE(scx_enq_flags, SCX_ENQ_PREEMPT)
#define WAKE_SYNC KERNEL_VALUE(scx_wake_flags, SCX_WAKE_SYNC)
#define TASK_QUEUED KERNEL_VALUE(scx_ent_flags, SCX_TASK_QUEUED)

s32 scx_bpf_create_dsq(u64 dsq_id, s32 node) __ksym;
void scx_bpf_destroy_dsq(u64 dsq_id) __ksym;
s32 scx_bpf_dsq_nr_queued(u64 dsq_id) __ksym;
int bpf_iter_scx_dsq_new(struct bpf_iter_scx_dsq *it, u64 dsq_id, u64 flags) __ksym;
struct task_struct *bpf_iter_scx_dsq_next(struct bpf_iter_scx_dsq *it) __ksym;
void bpf_iter_scx_dsq_destroy(struct bpf_iter_scx_dsq *it) __ksym;
void bpf_preempt_disable(void) __ksym;
void bpf_preempt_enable(void) __ksym;
void bpf_rcu_read_lock(void) __ksym;
void bpf_rcu_read_unlock(void) __ksym;
void scx_bpf_kick_cpu(s32 cpu, u64 flags) __ksym;
s32 scx_bpf_task_cpu(const struct task_struct *p) __ksym;
void scx_bpf_exit_bstr(s64 exit_code, char *fmt, u64 *data, u32 data_sz) __ksym;
void scx_bpf_error_bstr(char *fmt, u64 *data, u32 data_sz) __ksym;
struct task_struct *bpf_task_from_pid(s32 pid) __ksym;
void bpf_task_release(struct task_struct *p) __ksym;
struct cgroup *bpf_cgroup_ancestor(struct cgroup *cgrp, int level) __ksym;
void bpf_cgroup_release(struct cgroup *cgrp) __ksym;
extern const struct rq runqueues __ksym; /* one for each CPU */

#include "compat.h"

/*
 * The same object, to read pointers from. Where one is read from an object that the verifier trusts, it looks through all names
 * of the kernel's types, several times and on each path, for whether that one is to be trusted, too.
 */
#define untrusted(p) bpf_core_cast(p, typeof(*(p)))

/* Stop scheduling; the text reaches the loader as the reason. */
#define scheduler_error(fmt, args...)                                               \
	({                                                                          \
		static char text[] = fmt;                                           \
		u64 data[] = { args };                                              \
		scx_bpf_error_bstr(text, data, sizeof(data));                       \
	})
#define scheduler_leave(code, fmt, args...)                                         \
	({                                                                          \
		static char text[] = fmt;                                           \
		u64 data[] = { args };                                              \
		scx_bpf_exit_bstr(code, text, data, sizeof(data));                  \
	})

#endif
