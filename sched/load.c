// SPDX-License-Identifier: GPL-2.0
/* The BPF object: made fit for the running kernel, configured and loaded. */
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loader.h"

/* The BPF object, carried in the loader so that the two cannot be of different builds. */
__asm__(".pushsection .rodata\n"
	".balign 16\n"
	"object_start: .incbin \"" TEMPER_OBJECT "\"\n"
	"object_end: .popsection\n");
extern const char object_start[], object_end[];

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

void keep_pinned_storage(void)
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

int map_fd(struct scheduler *s, const char *name)
{
	return bpf_object__find_map_fd_by_name(s->object, name);
}

static const unsigned zero;

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
	return describe(s) ?: take_control(s, map_fd(s, "control"), map_fd(s, "tiers")) ?: pin_maps(s->object);
}
