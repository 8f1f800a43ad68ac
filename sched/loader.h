/* SPDX-License-Identifier: GPL-2.0 */
/* The parts of scx_temper: options, what the kernel must offer, limits in force, and how to say things. */
#ifndef TEMPER_LOADER_H
#define TEMPER_LOADER_H

#include <stdbool.h>
#include "intf.h"

#define SCHED_EXT_DIR "/sys/kernel/sched_ext"
#define CGROUP_ROOT "/sys/fs/cgroup"
#define MAX_MAPPED 256

struct bpf_object;
struct bpf_link;

struct mapping {
	enum temper_tier tier;
	const char *cgroup;
};

struct options {
	struct mapping mapped[MAX_MAPPED];
	int nr_mapped;
	const char *pin_dir; /* NULL: nothing is pinned */
	unsigned heartbeat_timeout_s;
	unsigned system_share_pct;
	bool reservation;
	unsigned reservation_mcpu; /* to begin with; user space may write another */
	unsigned long long fence[TEMPER_MAX_CPUS / 64];
	enum temper_loan loan;
	bool smt_exclusive;
	enum temper_limits limits;
	bool read_limits;
	bool detach, check;
	bool json;
	bool verbose;
};

extern struct options options;

/* The hash of the BPF object that this loader carries: by it a loader knows whether the scheduler it finds is its own. */
extern const unsigned char object_sha256[32];
enum temper_status print_version(void);

/* Fill `options`; leaves the process with a status on --help, --version or a usage error. */
void parse_options(int argc, char **argv);

/* What the kernel lacks, if anything: a status, after having said it. */
enum temper_status check_kernel(void);
/* The name of the attached scheduler's ops, or "" for none. */
const char *attached_ops(void);
bool is_detaching(void);
const char *untagged_function(void); /* NULL: none */
bool kernel_names_value(const char *type, const char *value);
/* Says why the kernel refused to attach. */
enum temper_status attach_refused(int error);
/* How often CPUs have come and gone. */
unsigned long long hotplug_seq(void);

bool kernel_tells_limits(void);
bool kernel_keeps_limits(void);
/* Whether this scheduler reads them there. */
bool limits_are_read(void);

/* What is done about cpu.max: LIMITS_IGNORE where nobody can know of it, and then refuse while there is any. */
enum temper_status choose_limits(enum temper_limits *limits);
enum temper_status check_cgroups(void);

bool parse_cpus(const char *text, unsigned long long *words);
/* One more than the highest number that a CPU may have. */
enum temper_status read_cpu_ids(unsigned *nr_cpus);
enum temper_status read_topology(struct temper_topology *topology, unsigned nr_cpus, bool *smt, unsigned *llcs);

/* Below options.pin_dir. Without one, nothing is pinned, and that is no failure. */
int open_pinned(const char *name); /* a map's descriptor; negative: errno says why */
enum temper_status pin_maps(struct bpf_object *object);
enum temper_status pin_link(struct bpf_link *link, const char *name);
void remove_pins(void);
/* Ours, and closed to others. */
enum temper_status make_pin_dir(void);

/* From now on this is the only scx_temper with pins in that folder, and whoever attached a scheduler there is gone: claim.c. */
enum temper_status become_the_only_loader(void);

/* From now on no detach starves, whoever asks for it: guard.c. */
enum temper_status start_guard(void);

/* From now on real-time tasks are lowered where others wait: rt_throttle.c. Descriptors; negative: there is none. */
struct rt_throttle_maps {
	int program, looks, hogs, rt_throttled;
};
enum temper_status start_rt_throttle(struct rt_throttle_maps use);
/* Whoever was lowered has its policy back. */
void stop_rt_throttle(void);
/* The same for a loader that was killed. */
void give_back_what_is_left(void);

unsigned long long monotonic_ns(void);

struct thread_stat {
	unsigned long long start_ticks; /* since boot, of sysconf(_SC_CLK_TCK) */
	int cpu; /* on which it runs or ran last */
};
/* False: there is no such thread. */
bool read_thread_stat(int tid, struct thread_stat *s);

/* The scheduler in the kernel: loaded by us, or adopted from the pins of another loader. */
struct scheduler {
	struct bpf_object *object; /* NULL: adopted */
	struct bpf_link *link;	/* the scheduler's */
	struct bpf_link *waits[2]; /* of the programs that hear of tasks that wait for locks */
	struct temper_control *control; /* shared with the scheduler */
	int exit_fd;
	unsigned nr_cpus; /* one more than the highest number of a CPU: there may be holes */
	unsigned long long hotplug_seq; /* when the topology was read */
	unsigned llcs; /* last-level caches of the machine */
	enum temper_limits limits; /* in force */
};

/*
 * Make room: adopt a scheduler that is ours, configured alike and without a loader, remove
 * one that is ours and differs, and refuse beside any other.
 */
enum temper_status take_over(struct scheduler *s, bool *adopted);
/* Says who has attached a scheduler. */
enum temper_status refuse_beside_attached(void);
/* Tasks' storage of the scheduler before, whoever loaded it, goes to the next one. */
void keep_pinned_storage(void);
enum temper_status load(struct scheduler *s);
int map_fd(struct scheduler *s, const char *name); /* of one that we have loaded */
/* Map "control" is shared from now on, and has what the options say of tiers and the reservation. */
enum temper_status take_control(struct scheduler *s, int control_fd, int tiers_fd);
/* Well also where the kernel has taken it, and let it go at once: has_left(). */
enum temper_status attach(struct scheduler *s);
bool has_left(const struct scheduler *s);
/* What start_rt_throttle() wants of it. */
struct rt_throttle_maps maps_for_rt_throttle(struct scheduler *s);
void give_sign_of_life(struct scheduler *s);
/* Returns once the kernel has released it. */
void detach(struct scheduler *s);
/* The same for a scheduler of ours whose loader is gone; none is fine, too. */
enum temper_status detach_orphan(void);
/* Forget it, without detaching one that is pinned. */
void release(struct scheduler *s);

/* Events: text on stderr, and a JSON line on stdout with --json. */
enum temper_status fail(enum temper_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));
enum temper_status end_output(void);
void note(const char *format, ...) __attribute__((format(printf, 1, 2)));
void say_attached(bool adopted);
void say_exited(const struct temper_exit_info *info);

#endif
