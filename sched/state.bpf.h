/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the scheduler remembers of a CPU and of a task, and nothing else.
 *
 * "Who owns this CPU" (a fence) and "what runs on it" are separate facts; only the
 * second is here. A field that other CPUs write is marked with its writers.
 */
#ifndef TEMPER_STATE_BPF_H
#define TEMPER_STATE_BPF_H

#include "kern.h"
#include "intf.h"

#define MAX_CPUS TEMPER_MAX_CPUS
#define MASK_WORDS (MAX_CPUS / 64)
#define MSEC 1000000ULL

/* Set by the loader. What stands here is what the verifier would see without one. */
const volatile struct temper_config config SEC(".rodata.config") = {
	.nr_cpus = 8,
	.nr_online = 8,
	.system_share_pct = 20,
	.heartbeat_timeout_ns = 10000 * MSEC,
};

/* What a round of looks has seen of a queue: the round's timer writes it (look.bpf.h, age.bpf.h). */
struct seen {
	u64 longest; /* ns that a task has waited */
	s32 asked;   /* tasks that are to end */
	u32 moved;   /* to the front */
};

/* Of those of a tier's own that ran here lately, the one that was due the largest share of it. */
struct own {
	u64 share, ran_at, vtime;
	s32 pid;
};

struct cpu_state {
	u64 free_until;	       /* when it last stopped being idle, or a task of ours stopped; rt_hogs.bpf.h */
	bool busy;	       /* as update_idle() said; false before it has said anything */
	u32 running;	       /* tier of the running task + 1; 0: none of ours */
	bool protected;	       /* the running task has a protected turn, out of order: its CPU may not be claimed */
	u64 protected_next;    /* the task about to run is to have one, of so many ns; 0: it is not */
	u32 taking;	       /* tier + 1 of the task on its way here from a shared queue; 0: none */
	s32 handoff_pid;       /* end_handoff() of any CPU: the task that waits for this CPU's waker to sleep; 0: none */
	s32 boost_pid;	       /* donate(), boost_queued() and take_boosted() of any CPU: whom to run for a donor; 0: nobody */
	u32 boost_tier;	       /* the donor's tier */
	s32 section_pid;       /* boost_section() of any CPU: boost_pid, where that is to end a section */
	bool boosted_section;  /* the task about to run is boosted to end a section */
	u64 section_began;     /* the running task is, since then; 0: it is not */
	u64 section_next;      /* not before that moment does this CPU run a boosted section again */
	s32 donor;	       /* repeat_donation(): who slept here last and donated; 0: nobody who waits still */
	u64 claimed_at;	       /* claim_cpu() of any CPU: when this one was claimed; 0: it is not */
	bool loan_ended;       /* reclaim() of any CPU: that is why it was claimed */
	u64 seen[NR_TIERS];    /* arrivals[] when dispatch() last looked for that tier */
	u64 served_at[NR_TIERS]; /* when that tier last ran here, or was last seen with nothing queued */
	struct own own[NR_TIERS];
	u32 pinned[NR_TIERS];  /* enqueue() of any CPU: tasks queued for this CPU alone */
	s32 asked[NR_TIERS];   /* end_round(): those of them that are to end, as of the last round */
	u64 turn_ends;	       /* of the running task, which has a limit; 0: it has none */
	u64 turn_timer;	       /* when the timer that ends it expires; 0: none is under way */
	u64 longest_wait[NR_TIERS]; /* end_round(): of those, as of the last round */
	struct seen seeing[NR_TIERS]; /* of those, in the round that is under way */
} __attribute__((aligned(64)));

struct cpu_state cpus[MAX_CPUS];

static __always_inline struct cpu_state *cpu_state(s32 cpu)
{
	return &cpus[(u32)cpu % MAX_CPUS];
}

/*
 * Under core scheduling a CPU chooses for its siblings, too. Before 7.3 the kernel may then wait for a lock that it has, for
 * ever, if a program moves one task out of a queue: that is left to the CPU itself, the next time that it chooses.
 */
static __always_inline bool is_this_cpu(s32 cpu)
{
	return bpf_get_smp_processor_id() == (u32)cpu;
}

struct task_state {
	u32 cgroup;	  /* index into cgroups */
	bool crowded;	  /* of its parent: its cgroup found no slot of its own */
	u8 tier;	  /* tier under which the task is queued or runs */
	bool active;	  /* counted in its cgroup's sums, under active_tier with active_weight */
	u8 active_tier;
	u32 active_weight;
	u8 vtime_tier;	  /* tier whose clock dsq_vtime belongs to */
	u64 vtime[NR_TIERS]; /* what it was when the task left that tier */
	bool admitted;	  /* counted by its limit among those that wait for a CPU */
	bool in_gap;	  /* take_from_throttled() of any CPU: beyond its limit, it may use what nobody wants */
	u32 queued;	  /* enum queued_as; changed by atomic operations: retract_queued() of any CPU, unthrottle_task() */
	bool sync_wake;	  /* its waker said that it would sleep */
	s32 woken_on;
	s32 queued_cpu;	  /* where it waits: for QUEUED_PINNED, and for who is throttled and will be that */
	u8 boosted_tier;  /* the donor's; this and the next ones are written by boost() of any waiter */
	s32 donor;	  /* who waits for boosted_lock */
	u32 donor_cgroup; /* and the slot of its cgroup */
	u64 wanted_lock;  /* the kernel lock that it sleeps for; 0: none */
	u64 boosted_lock; /* donate() of any waiter: the lock that it is to release; 0: none */
	u64 woken_until;  /* it is about to take boosted_lock, until then; 0: it has it */
	u64 runnable_at;  /* unthrottle_task(), in a timer, too: since when it waits for a CPU */
	u64 waits_since;  /* since when it has not run, moves and waits for limits among that; 0: it sleeps or runs */
	u32 limited;	  /* slot of the limit under which it runs; NO_SLOT: none */
	u64 granted;	  /* ns, of that */
	u64 prepaid;	  /* unthrottle_task(): ns of the next turn, taken when it was unthrottled */
	u32 prepaid_by;	  /* unthrottle_task(): slot of the limit from which they were taken */
	u64 turn_exec;	  /* sum_exec_runtime as its turn began */
	u64 beyond_until; /* sum_exec_runtime up to which it goes on beyond its limit, until it has left the kernel; 0: it does not */
	u64 throttled_at; /* unthrottle_task(), too: since when it waits for its limit; 0: it has had a turn since */
	u64 stop_asked_exec; /* look_at() of a round's timer: sum_exec_runtime + 1 when its process was seen to be asked to stop; 0: it is not */
	u64 charged_exec; /* sum_exec_runtime up to which it has been charged */
};

/*
 * How a task is queued, in one word, so that who takes it out of there gives back what was counted, whatever the task's tier
 * is by then. QUEUED_TAKEN: it was throttled, and is to run in a gap. From QUEUED_THROTTLED on: throttled, by which limit, a
 * cgroup's slot.
 */
enum queued_as { NOT_QUEUED, QUEUED_SHARED, QUEUED_PINNED, QUEUED_TAKEN, QUEUED_KINDS, QUEUED_THROTTLED = QUEUED_KINDS * NR_TIERS };

static __always_inline u32 queued_mark(bool pinned, u32 tier)
{
	return (pinned ? QUEUED_PINNED : QUEUED_SHARED) + tier * QUEUED_KINDS;
}

/* QUEUED_THROTTLED for any limit. */
static __always_inline u32 queued_kind(u32 mark)
{
	return mark >= QUEUED_THROTTLED ? QUEUED_THROTTLED : mark % QUEUED_KINDS;
}

static __always_inline u32 queued_tier(u32 mark)
{
	return mark / QUEUED_KINDS % NR_TIERS;
}

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct task_state);
} task_states SEC(".maps");

static __always_inline struct task_state *task_state(struct task_struct *p)
{
	return bpf_task_storage_get(&task_states, p, 0, 0);
}

/* Control and description, shared with user space. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct temper_control);
} control SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct temper_info);
} info SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct temper_exit_info);
} exit_info SEC(".maps");

static __always_inline struct temper_control *get_control(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&control, &zero);
}

#endif
