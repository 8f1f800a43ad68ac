/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the scheduler in the kernel, its loader and Go share: enums, structs,
 * static asserts, nothing else. internal/node/enforce/intf_test.go compares every
 * value and size below with its Go twin.
 */
#ifndef TEMPER_INTF_H
#define TEMPER_INTF_H

#define TEMPER_OPS_NAME "temper"
#define TEMPER_MAX_CPUS 512
#define TEMPER_MAX_CGROUPS 16384 /* a power of two */
#define TEMPER_MAX_LEVELS 256 /* of cgroups, below the root */
#define TEMPER_ABI 10 /* raised whenever a struct below changes its layout */
#define TEMPER_WATCHDOG_MS 30000 /* a runnable task that waits for longer has the kernel throw the scheduler out */

enum temper_tier {
	TIER_SYSTEM = 0, /* kernel threads, kubelet, runtime: first, within a share */
	TIER_CRITICAL = 1,
	TIER_STANDARD = 2,
	TIER_BACKGROUND = 3, /* only in gaps */
	NR_TIERS = 4,
};

/* When background may run on a CPU of the fence. */
enum temper_loan {
	LOAN_GAPS = 0,	/* at any moment, as on any other CPU */
	LOAN_IDLE = 1,	/* while no critical task is runnable */
	LOAN_NEVER = 2,
};

/* What becomes of a task whose cgroup, or one above it, has used up its cpu.max. */
enum temper_limits {
	LIMITS_PACED = 0,  /* it waits for a few milliseconds: quota comes in evenly */
	LIMITS_GAP = 1,	   /* it may use what nobody wants */
	LIMITS_FREEZE = 2, /* it waits for the next period, as under the stock kernel */
	LIMITS_IGNORE = 3, /* nothing */
};

/* What a runnable task waits for. */
enum temper_wait {
	WAIT_ANY_CPU = 0,   /* any CPU that it may run on, behind others */
	WAIT_ONE_CPU = 1,   /* the one CPU that it may run on, behind others */
	WAIT_LIMIT = 2,	    /* its limit, and then perhaps a CPU */
	WAIT_REAL_TIME = 3, /* a CPU that a real-time task has */
	NR_WAITS = 4,
};

/* Power-of-two microsecond buckets: [0] is < 1 us, [i] is < 2^i us, the last is all above. */
#define TEMPER_HIST_BUCKETS 28

struct temper_hist {
	unsigned long long bucket[TEMPER_HIST_BUCKETS];
};

struct temper_tier_stats {
	unsigned long long run_ns;	 /* CPU time used */
	unsigned long long enqueued;	 /* times a task was queued, and not placed on an idle CPU */
	unsigned long long placed_idle;	 /* times a task was placed on an idle CPU at once */
	unsigned long long preempted;	 /* times a CPU that ran it was claimed for a higher tier */
	unsigned long long starvation_turns; /* runs granted out of order so that nothing starves */
	unsigned long long aged;	 /* tasks put to the front of their queue because they had waited long */
	unsigned long long boosted;	 /* times a task was run out of order since others waited, or might, for what it held */
	unsigned long long max_wait_ns;	 /* longest wait from runnable to running */
	struct temper_hist wait;	 /* wait from runnable to running */
};

/* Map "stats": per-CPU array with one entry. */
struct temper_stats {
	struct temper_tier_stats tier[NR_TIERS];
	struct temper_hist gap;		 /* time that background ran on after a higher task claimed its CPU */
	struct temper_hist loan_back;	 /* time that it ran on after a loan, or its place beside critical work, had ended */
	unsigned long long rechecks;	 /* exit checks that found higher work, or that the CPU may not run what it was about to run, and were repeated */
	unsigned long long system_over;	 /* times that system tasks had used up their guaranteed share */
	unsigned long long critical_over; /* times that critical tasks had used up their reservation */
	unsigned long long crowded;	 /* cgroups, now, that found no slot: neither tier nor limit of theirs is known */
	unsigned long long longest_wait_ns[NR_WAITS]; /* of those of 10 ms or longer that have ended, or that a round has seen */
};

/* Map "waits": array with one entry: the longest waits that are under way, as of the last round of looks. */
struct temper_waits {
	unsigned long long under_way_ns[NR_WAITS]; /* 0: none of 10 ms or longer */
	unsigned int tid[NR_WAITS];		   /* whose; 0: it cannot be told */
};

/* Map "tiers": hash by cgroup id, written from user space: what is so for a cgroup and all below that have no entry. */
struct temper_assignment {
	unsigned short tier;   /* enum temper_tier */
	unsigned short limits; /* enum temper_limits + 1, but not LIMITS_IGNORE; 0: the node's */
};

/* Map "control": array with one entry, written from user space. */
struct temper_control {
	unsigned long long tier_gen;	 /* raise by one after any change of map "tiers" */
	unsigned long long heartbeat_ns; /* CLOCK_MONOTONIC of the last sign of life */
	unsigned long long reservation_mcpu; /* thousandths of a CPU, if there is a reservation; 0: critical shares with standard */
};

#define TEMPER_MARKS 32 /* half periods that a limit looks back at, and more: a power of two */

/*
 * Map "limits": array with an entry for each cgroup that the scheduler knows; quota_ns of 0: it has no limit.
 * Times are in ns; written by any CPU.
 */
struct temper_limit {
	unsigned long long cgroup; /* its id */
	unsigned long long quota_ns;
	unsigned long long period_ns;
	unsigned long long burst_ns;
	long long left_ns;		  /* what may be used now; negative: what was used too much, and is yet to be paid */
	unsigned long long filled_at;	  /* the scheduler's clock, up to which quota has come in */
	unsigned long long used_ns;	  /* while it had a limit */
	unsigned long long beyond_ns;	  /* of that, beyond the limit, in gaps */
	unsigned long long overrun_ns;	  /* of that, before it was paid: by late timers, and tasks that are never throttled */
	unsigned long long throttles;	  /* times that a task had to wait for the limit */
	unsigned long long throttled_since; /* the scheduler's clock, up to which throttled_ns counts */
	unsigned long long throttled_ns;  /* time in which some task waited for it */
	unsigned long long longest_throttle_ns; /* of one task, until it could be chosen again */
	unsigned long long half_ns;	  /* half a period, as it is kept: of SHORT_PERIOD or longer */
	unsigned long long half_ends;	  /* the scheduler's clock; 0: none has begun since the limit was set */
	unsigned long long periods;	  /* in which something was used */
	unsigned long long throttled_periods; /* in which a task had to wait for it */
	unsigned long long throttles_before; /* `throttles` when the period began */
	unsigned long long paid_ns;	  /* what was taken and not given back */
	unsigned long long paid_before[TEMPER_MARKS]; /* paid_ns when each of the last half periods began */
	unsigned long long at;		  /* counts half periods: paid_before[at % TEMPER_MARKS] is of the one under way */
	long long allowed_ns;		  /* in this half period */
	unsigned int throttled;		  /* tasks that wait for it */
	unsigned int admitted;		  /* tasks that wait for a CPU, and not for it */
	unsigned int mode;		  /* enum temper_limits */
	unsigned int pad;
};

/* Map "looks": array by CPU, written by the program look_at_cpus for the loader that runs it. */
struct temper_look {
	unsigned long long taken_ns; /* since when none of ours could run there, the CPU not being idle; 0: no real-time task is runnable there */
	unsigned long long start;    /* of the task that has it, in ns since boot */
	int tid;
	int process;
	unsigned int kernel;  /* it is a thread of the kernel */
	unsigned int waiting; /* a task of ours waits that may run there */
	unsigned int donor;   /* it has donated its priority to the task there, which has a lock that it waits for */
	unsigned int pad;
	char comm[16];
};

/* Map "hogs": array by CPU, written by the loader: the real-time task that had it last. Times are CLOCK_MONOTONIC. */
struct temper_hog {
	unsigned long long since_ns; /* it has been told of */
	unsigned long long seen_ns;  /* when it was last found to have had the CPU for long; 0: never */
	unsigned long long turns;    /* times that it, or another on that CPU, was lowered for those that wait */
	int tid;
	int process;
	unsigned int policy;
	unsigned int priority;
	unsigned int starves; /* somebody waits for that CPU, or did when it was lowered last */
	int error;	      /* errno: why it cannot be lowered; 0: it can */
	char comm[16];
};

/* Map "rt_throttled": hash by thread id: who was lowered to SCHED_IDLE, and what it is to get back. */
struct temper_rt_throttled {
	unsigned long long start; /* in ns since boot: the id may be another's by then */
	unsigned int policy;	  /* with SCHED_RESET_ON_FORK, if it was set */
	unsigned int priority;
	unsigned int cpu;	/* for whose sake */
	unsigned int inherited; /* it was forked by one that was lowered, at `start` or a little later */
	unsigned long long given_back; /* CLOCK_MONOTONIC; 0: not yet. The entry stays for a while: a fork may be under way */
};

/* Section ".rodata.config": set by the loader before the programs are loaded. */
struct temper_config {
	unsigned int nr_cpus;   /* possible ones */
	unsigned int nr_online; /* when CPUs come or go, the scheduler is loaded anew */
	unsigned int system_share_pct;
	unsigned int reservation; /* there is one, of control.reservation_mcpu; else critical comes first however much it uses */
	unsigned int loan;	/* enum temper_loan, of the fence */
	unsigned int smt;	/* some core has more than one thread */
	unsigned int llcs;	/* last-level caches: several CPUs may share one */
	unsigned int smt_exclusive; /* no background beside a sibling that runs critical work */
	unsigned int limits;	/* enum temper_limits, of cgroups that were assigned none of their own */
	unsigned int read_limits; /* the kernel tells of none: kernel_limits.bpf.h */
	unsigned long long heartbeat_timeout_ns; /* 0: an orphan stays */
};

/* Section ".rodata.topology": set by the loader before the programs are loaded. */
struct temper_topology {
	unsigned short next_sibling[TEMPER_MAX_CPUS]; /* a ring through the threads of each core */
	unsigned long long llc[TEMPER_MAX_CPUS][TEMPER_MAX_CPUS / 64]; /* of each CPU: those that share its last-level cache */
	unsigned long long fence[TEMPER_MAX_CPUS / 64];
};

/* Map "info": array with one entry, written once by the loader before it attaches. */
struct temper_info {
	unsigned int abi;
	unsigned int nr_cpus;
	unsigned int heartbeat_timeout_ms; /* 0: an orphan stays */
	unsigned int system_share_pct;
	unsigned int limits;		   /* enum temper_limits */
	unsigned int loader_pid;
	unsigned int reservation;	   /* there is one, of control.reservation_mcpu */
	unsigned int loan;
	unsigned int smt_exclusive;
	unsigned int llcs;		   /* last-level caches that placement knows of */
	unsigned long long fence[TEMPER_MAX_CPUS / 64];
	unsigned char bpf_sha256[32];	   /* of the BPF object as embedded in the loader */
};

/* Map "exit_info": array with one entry, written by ops.exit with the kernel's own words. */
struct temper_exit_info {
	int kind;			   /* enum scx_exit_kind; 0: still running */
	unsigned int pad;
	long long exit_code;
	char reason[128];
	char msg[512];
};

/* Process exit status, the same for scx_temper and temper. */
enum temper_status {
	TEMPER_OK = 0,
	TEMPER_FAILED = 1,	      /* anything without a status of its own */
	TEMPER_USAGE = 2,
	TEMPER_NOT_ROOT = 3,
	TEMPER_NO_SCHED_EXT = 4,
	TEMPER_BAD_BTF = 5,	      /* kernel type data missing or without what we need */
	TEMPER_OTHER_SCHEDULER = 6,   /* another sched_ext scheduler is attached */
	TEMPER_LIMITS_PRESENT = 7,    /* finite cpu.max somewhere, that cannot be kept on this kernel */
	TEMPER_LOAD_FAILED = 8,	      /* the kernel refused the programs or the attach */
	TEMPER_CONFIG = 9,
	TEMPER_NO_CGROUP = 10,	      /* no cgroup v2, or no cpu controller */
	TEMPER_EJECTED = 11,	      /* was attached, and the kernel threw it out */
	TEMPER_NO_DISK = 12,
	TEMPER_NO_NETWORK = 13,
	TEMPER_EXIT_HOTPLUG = 14,     /* CPUs came or went: start again */
	TEMPER_ISOLATED_CPUS = 15,    /* booted with isolcpus=, beside which the kernel takes no sched_ext scheduler */
	TEMPER_INTERRUPTED = 130,
};

_Static_assert(sizeof(struct temper_hist) == 8 * TEMPER_HIST_BUCKETS, "hist");
_Static_assert(sizeof(struct temper_tier_stats) == 64 + sizeof(struct temper_hist), "tier_stats");
_Static_assert(sizeof(struct temper_assignment) == 4, "assignment");
_Static_assert(sizeof(struct temper_limit) == 440, "limit");
_Static_assert(sizeof(struct temper_info) == 136, "info");
_Static_assert(sizeof(struct temper_exit_info) == 656, "exit_info");
_Static_assert(sizeof(struct temper_look) == 56, "look");
_Static_assert(sizeof(struct temper_hog) == 64, "hog");
_Static_assert(sizeof(struct temper_rt_throttled) == 32, "rt_throttled");

#endif
