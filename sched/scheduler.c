// SPDX-License-Identifier: GPL-2.0
/*
 * Loading, attaching, pinning and adopting the scheduler. The link is pinned: a loader
 * that dies leaves the scheduler attached, and the next one adopts it.
 */
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "loader.h"

/* The BPF object, carried in the loader so that the two cannot be of different builds. */
__asm__(".pushsection .rodata\n"
	".balign 16\n"
	"object_start: .incbin \"" TEMPER_OBJECT "\"\n"
	"object_end: .popsection\n");
extern const char object_start[], object_end[];

static const unsigned zero;

unsigned long long monotonic_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

/*
 * The entry of map "control" is written in place: rewriting it whole would undo what
 * another process, such as the agent, changes in another field at the same time.
 */
static enum temper_status map_control(struct scheduler *s, int fd)
{
	s->control = mmap(NULL, sizeof(*s->control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (s->control != MAP_FAILED)
		return TEMPER_OK;
	s->control = NULL;
	return fail(TEMPER_FAILED, "cannot map \"control\" into memory: %s", strerror(errno));
}

void give_sign_of_life(struct scheduler *s)
{
	__atomic_store_n(&s->control->heartbeat_ns, monotonic_ns(), __ATOMIC_RELAXED);
}

static void announce_tiers(struct scheduler *s)
{
	__atomic_fetch_add(&s->control->tier_gen, 1, __ATOMIC_SEQ_CST);
}

/* In the place of what an earlier loader or its agent has left there. */
static void reserve(struct scheduler *s)
{
	__atomic_store_n(&s->control->reservation_mcpu, options.reservation_mcpu, __ATOMIC_RELAXED);
}

/* On a 64-bit kernel the inode of a cgroup's directory is its id. */
static enum temper_status read_cgroup_id(const char *cgroup, unsigned long long *id)
{
	struct stat st;

	errno = 0;
	if (stat(cgroup, &st) || !S_ISDIR(st.st_mode))
		return fail(TEMPER_CONFIG, "--tier: no cgroup %s: %s", cgroup, strerror(errno ?: ENOTDIR));
	*id = st.st_ino;
	return TEMPER_OK;
}

enum temper_status check_cgroups(void)
{
	enum temper_status status = TEMPER_OK;
	unsigned long long id;

	for (int i = 0; !status && i < options.nr_mapped; i++)
		status = read_cgroup_id(options.mapped[i].cgroup, &id);
	return status;
}

static enum temper_status map_tiers(int tiers_fd)
{
	for (int i = 0; i < options.nr_mapped; i++) {
		const struct mapping *m = &options.mapped[i];
		unsigned tier = m->tier;
		unsigned long long id;
		enum temper_status status = read_cgroup_id(m->cgroup, &id);

		if (status)
			return status;
		if (bpf_map_update_elem(tiers_fd, &id, &tier, BPF_ANY))
			return fail(TEMPER_FAILED, "cannot map %s: %s", m->cgroup, strerror(errno));
	}
	return TEMPER_OK;
}

/*
 * Tasks' storage goes from one scheduler to the next, also where another loader made it: since 6.14, a CPU that goes while the
 * kernel frees such a map can stop the kernel for good, and a CPU that goes is what ends the scheduler (docs/decisions/0048).
 * What the last scheduler left in it is cleared by temper_init_task().
 */
static const char storage[] = "task_states";
static int kept = -1; /* descriptor; negative: there is none */

static void keep(int fd)
{
	if (fd < 0)
		return;
	if (kept >= 0)
		close(kept);
	kept = fd;
}

static void keep_pinned_storage(void)
{
	if (options.pin_dir && kept < 0)
		keep(open_pinned(storage));
}

/* Another version's may be laid out differently, or may be no such map at all. */
static bool is_like(int fd, const struct bpf_map *map)
{
	struct bpf_map_info info = {};
	unsigned size = sizeof(info);

	return !bpf_map_get_info_by_fd(fd, &info, &size) && info.type == bpf_map__type(map) && info.key_size == bpf_map__key_size(map) &&
	       info.value_size == bpf_map__value_size(map) && info.map_flags == bpf_map__map_flags(map);
}

static enum temper_status use_kept_storage(struct scheduler *s)
{
	struct bpf_map *map = bpf_object__find_map_by_name(s->object, storage);

	if (kept >= 0 && is_like(kept, map) && bpf_map__reuse_fd(map, kept))
		return fail(TEMPER_LOAD_FAILED, "cannot use map %s of the scheduler before: %s", storage, strerror(errno));
	return TEMPER_OK;
}

static void keep_storage(struct scheduler *s)
{
	keep(fcntl(bpf_object__find_map_fd_by_name(s->object, storage), F_DUPFD_CLOEXEC, 0));
}

/* What the pins say of a scheduler of ours; false where there is none. */
static bool read_pinned_info(struct temper_info *info)
{
	int fd = options.pin_dir && !strcmp(attached_ops(), TEMPER_OPS_NAME) ? open_pinned("info") : -1;
	bool found = fd >= 0 && !bpf_map_lookup_elem(fd, &zero, info);

	if (fd >= 0)
		close(fd);
	return found;
}

static enum temper_status adopt(struct scheduler *s, struct temper_info *info)
{
	int info_fd = open_pinned("info"), control_fd = open_pinned("control"), tiers_fd = open_pinned("tiers");
	enum temper_status status;

	s->exit_fd = open_pinned("exit_info");
	info->loader_pid = getpid();
	if (info_fd < 0 || control_fd < 0 || tiers_fd < 0 || s->exit_fd < 0 ||
	    bpf_map_update_elem(info_fd, &zero, info, BPF_ANY))
		status = fail(TEMPER_FAILED, "cannot open the pins in %s: %s", options.pin_dir, strerror(errno));
	else
		status = map_control(s, control_fd) ?: map_tiers(tiers_fd);
	close(info_fd);
	close(control_fd);
	close(tiers_fd);
	if (status)
		return status;
	give_sign_of_life(s);
	reserve(s);
	announce_tiers(s);
	say_attached(true);
	return TEMPER_OK;
}

/* The kernel releases a link from a workqueue, some time after the last pin is gone. */
static bool wait_until_detached(void)
{
	for (int i = 0; i < 500 && *attached_ops(); i++)
		usleep(10000);
	return !*attached_ops();
}

static bool same_scheduler(const struct scheduler *s, const struct temper_info *info)
{
	return info->abi == TEMPER_ABI && !memcmp(info->bpf_sha256, object_sha256, sizeof(object_sha256)) &&
	       info->system_share_pct == options.system_share_pct &&
	       info->reservation == options.reservation && info->loan == options.loan &&
	       info->smt_exclusive == options.smt_exclusive && info->limits == s->limits && !memcmp(info->fence, options.fence, sizeof(info->fence)) &&
	       info->heartbeat_timeout_ms == options.heartbeat_timeout_s * 1000;
}

enum temper_status refuse_beside_attached(void)
{
	struct temper_info info;

	if (read_pinned_info(&info))
		return fail(TEMPER_OTHER_SCHEDULER, "scx_temper, process %u, has attached the scheduler; stop it first", info.loader_pid);
	return fail(TEMPER_OTHER_SCHEDULER, "%s is attached; stop it first", attached_ops());
}

enum temper_status take_over(struct scheduler *s, bool *adopted)
{
	struct temper_info info;

	*adopted = false;
	keep_pinned_storage();
	if (read_pinned_info(&info)) {
		*adopted = same_scheduler(s, &info);
		if (*adopted)
			return adopt(s, &info);
		note("replacing the scheduler of another build, or with other options");
		remove_pins();
		wait_until_detached();
	}
	return *attached_ops() ? refuse_beside_attached() : TEMPER_OK;
}

static int map_fd(struct scheduler *s, const char *name)
{
	return bpf_object__find_map_fd_by_name(s->object, name);
}

struct rt_throttle_maps maps_for_rt_throttle(struct scheduler *s)
{
	const char *program = "look_at_cpus";

	if (!s->object)
		return (struct rt_throttle_maps){ open_pinned(program), open_pinned("looks"), open_pinned("hogs"), open_pinned("rt_throttled") };
	return (struct rt_throttle_maps){ bpf_program__fd(bpf_object__find_program_by_name(s->object, program)), map_fd(s, "looks"),
				       map_fd(s, "hogs"), map_fd(s, "rt_throttled") };
}

static enum temper_status describe(struct scheduler *s)
{
	struct temper_info info = {
		.abi = TEMPER_ABI,
		.nr_cpus = s->nr_cpus,
		.heartbeat_timeout_ms = options.heartbeat_timeout_s * 1000,
		.system_share_pct = options.system_share_pct,
		.reservation = options.reservation,
		.loan = options.loan,
		.smt_exclusive = options.smt_exclusive,
		.llcs = s->llcs,
		.limits = s->limits,
		.loader_pid = getpid(),
	};

	memcpy(info.fence, options.fence, sizeof(info.fence));
	memcpy(info.bpf_sha256, object_sha256, sizeof(object_sha256));
	if (bpf_map_update_elem(map_fd(s, "info"), &zero, &info, BPF_ANY))
		return fail(TEMPER_FAILED, "cannot write map info: %s", strerror(errno));
	return TEMPER_OK;
}

/* What stands in a section of constants, to be set before the programs are loaded; NULL: it has no place there. */
static void *constants(struct scheduler *s, const char *section, size_t needed)
{
	struct bpf_map *map = bpf_object__find_map_by_name(s->object, section);
	size_t size = 0;
	void *value = map ? bpf_map__initial_value(map, &size) : NULL;

	return size >= needed ? value : NULL;
}

/* A member of the ops, in the BPF object; NULL: it has none of that name. */
static void *ops_member(struct scheduler *s, const char *name)
{
	struct bpf_map *map = bpf_object__find_map_by_name(s->object, "temper_ops");
	const struct btf *btf = bpf_object__btf(s->object);
	int id = btf__find_by_name_kind(btf, "sched_ext_ops", BTF_KIND_STRUCT);
	const struct btf_type *ops = id > 0 ? btf__type_by_id(btf, id) : NULL;
	char *value = map ? bpf_map__initial_value(map, &(size_t){ 0 }) : NULL;

	for (int i = 0; ops && value && i < btf_vlen(ops); i++)
		if (!strcmp(btf__name_by_offset(btf, btf_members(ops)[i].name_off), name))
			return value + btf_members(ops)[i].offset / 8;
	return NULL;
}

/*
 * What the running kernel has no place for is taken out. Where the flag is not known, the kernel queues tasks that may
 * not migrate as it does all others, and refuses a scheduler that asks for it. Where it tells of no limits, they are
 * read, or not kept (choose_limits).
 */
static enum temper_status adapt_ops(struct scheduler *s)
{
	enum { OPS_ENQ_MIGRATION_DISABLED = 1 << 4 };
	unsigned long long *flags = ops_member(s, "flags");
	struct bpf_program **set_bandwidth = ops_member(s, "cgroup_set_bandwidth");
	unsigned long long *seq = ops_member(s, "hotplug_seq");

	if (!flags || !set_bandwidth || !seq)
		return fail(TEMPER_LOAD_FAILED, "the BPF object has no place for its flags, for limits, or for hotplug_seq");
	*seq = s->hotplug_seq;
	if (!kernel_names_value("scx_ops_flags", "SCX_OPS_ENQ_MIGRATION_DISABLED"))
		*flags &= ~OPS_ENQ_MIGRATION_DISABLED;
	if (limits_are_read()) {
		bpf_program__set_autoload(*set_bandwidth, false);
		*set_bandwidth = NULL;
	}
	return TEMPER_OK;
}

static enum temper_status configure(struct scheduler *s)
{
	struct temper_config *config = constants(s, ".rodata.config", sizeof(*config));
	struct temper_topology *topology = constants(s, ".rodata.topology", sizeof(*topology));
	enum temper_status status;
	bool smt;

	if (!config || !topology)
		return fail(TEMPER_LOAD_FAILED, "the BPF object has no place for its configuration");
	s->hotplug_seq = hotplug_seq();
	status = read_cpu_ids(&s->nr_cpus) ?: read_topology(topology, s->nr_cpus, &smt, &s->llcs);
	if (status)
		return status;
	*config = (struct temper_config){
		.nr_cpus = s->nr_cpus,
		.nr_online = sysconf(_SC_NPROCESSORS_ONLN),
		.system_share_pct = options.system_share_pct,
		.reservation = options.reservation,
		.loan = options.loan,
		.smt = smt,
		.llcs = s->llcs,
		.smt_exclusive = smt && options.smt_exclusive,
		.limits = s->limits,
		.read_limits = limits_are_read() && kernel_keeps_limits(),
		/* Without a pin it cannot be orphaned. */
		.heartbeat_timeout_ns = options.pin_dir ? options.heartbeat_timeout_s * 1000000000ull : 0,
	};
	return TEMPER_OK;
}

static FILE *withheld; /* what libbpf warns of while the programs are loaded */

static int withhold(enum libbpf_print_level level, const char *format, va_list args)
{
	if (level == LIBBPF_WARN)
		return vfprintf(withheld, format, args);
	return options.verbose ? vfprintf(stderr, format, args) : 0;
}

static enum temper_status refused(int error, const char *warnings)
{
	const char *untagged = untagged_function();

	if (options.verbose || !untagged)
		fputs(warnings, stderr);
	if (untagged)
		return fail(TEMPER_BAD_BTF,
			    "the type data of this kernel lacks the tag bpf_kfunc on %s, so no loader can link to it; use another build of the kernel",
			    untagged);
	return fail(TEMPER_LOAD_FAILED, "the kernel refused the programs: %s; --verbose shows why", strerror(error));
}

/* Where the cause is known, one line names it, and not first what libbpf makes of it. */
static enum temper_status load_programs(struct scheduler *s)
{
	enum temper_status status = TEMPER_OK;
	libbpf_print_fn_t print;
	char *warnings = NULL;
	size_t size;

	withheld = open_memstream(&warnings, &size);
	if (!withheld)
		return fail(TEMPER_FAILED, "no memory");
	print = libbpf_set_print(withhold);
	int error = bpf_object__load(s->object);

	libbpf_set_print(print);
	fclose(withheld);
	if (error)
		status = refused(-error, warnings);
	free(warnings);
	return status;
}

enum temper_status load(struct scheduler *s)
{
	enum { VERIFIER_STATISTICS = 4 };
	LIBBPF_OPTS(bpf_object_open_opts, open_options, .object_name = "temper",
		    .kernel_log_level = options.verbose ? VERIFIER_STATISTICS : 0);
	enum temper_status status;

	s->object = bpf_object__open_mem(object_start, object_end - object_start, &open_options);
	if (!s->object)
		return fail(TEMPER_LOAD_FAILED, "cannot open the BPF object: %s", strerror(errno));
	if ((status = configure(s) ?: adapt_ops(s) ?: use_kept_storage(s) ?: load_programs(s)))
		return status;
	keep_storage(s);
	s->exit_fd = map_fd(s, "exit_info");
	status = describe(s) ?: map_tiers(map_fd(s, "tiers")) ?: map_control(s, map_fd(s, "control"));
	if (status)
		return status;
	give_sign_of_life(s);
	reserve(s);
	announce_tiers(s);
	return pin_maps(s->object);
}

/* The end first, so that no wait seems to last for ever. What they note of a task before the scheduler knows it is cleared. */
static enum temper_status hear_of_waits(struct scheduler *s)
{
	static const char *const programs[] = { "temper_contention_end", "temper_contention_begin" };
	enum temper_status status = TEMPER_OK;

	for (unsigned i = 0; !status && i < sizeof(programs) / sizeof(*programs); i++) {
		s->waits[i] = bpf_program__attach(bpf_object__find_program_by_name(s->object, programs[i]));
		if (!s->waits[i])
			return fail(TEMPER_LOAD_FAILED, "the kernel refused to attach %s: %s", programs[i], strerror(errno));
		status = pin_link(s->waits[i], programs[i]);
	}
	return status;
}

/* The kernel tells of much that it refuses, such as a topology that is out of date, as of a scheduler that has left. */
bool has_left(const struct scheduler *s)
{
	struct temper_exit_info info = {};

	return !bpf_map_lookup_elem(s->exit_fd, &zero, &info) && info.kind;
}

enum temper_status attach(struct scheduler *s)
{
	enum temper_status status = hear_of_waits(s);

	if (status)
		return status;
	s->link = bpf_map__attach_struct_ops(bpf_object__find_map_by_name(s->object, "temper_ops"));
	if (!s->link)
		return attach_refused(errno);
	status = pin_link(s->link, "link");
	/* The kernel compares it, but takes 0, which is what it is before the first CPU comes or goes, for "do not". */
	if (!status && !has_left(s) && hotplug_seq() != s->hotplug_seq)
		return TEMPER_EXIT_HOTPLUG;
	return status;
}

void detach(struct scheduler *s)
{
	remove_pins();
	bpf_link__destroy(s->waits[0]);
	bpf_link__destroy(s->waits[1]);
	bpf_link__destroy(s->link);
	s->link = s->waits[0] = s->waits[1] = NULL;
	if (!wait_until_detached())
		note("the kernel has not released the scheduler within 5 s");
}

enum temper_status detach_orphan(void)
{
	bool attached = !strcmp(attached_ops(), TEMPER_OPS_NAME);

	remove_pins();
	if (options.pin_dir && !access(options.pin_dir, F_OK))
		return fail(TEMPER_FAILED, "cannot remove %s: it is not empty, or is mounted", options.pin_dir);
	if (attached && !wait_until_detached())
		return fail(TEMPER_FAILED, "the kernel has not released the scheduler within 5 s");
	return TEMPER_OK;
}

/* Destroying a pinned link without disconnecting it would detach what it holds. */
static void release_link(struct bpf_link *link)
{
	if (!link)
		return;
	bpf_link__disconnect(link);
	bpf_link__destroy(link);
}

void release(struct scheduler *s)
{
	release_link(s->waits[0]);
	release_link(s->waits[1]);
	release_link(s->link);
	bpf_object__close(s->object);
	if (s->control)
		munmap(s->control, sizeof(*s->control));
}
