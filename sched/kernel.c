// SPDX-License-Identifier: GPL-2.0
/* What the kernel must offer, checked before anything is loaded, so that each lack has a name. */
#define _DEFAULT_SOURCE /* strsep */
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "loader.h"

/* Each by the name that it has, or that it had in older kernels (compat.h). */
static const struct {
	const char *name, *older;
} functions[] = {
	{ "scx_bpf_create_dsq", NULL },
	{ "scx_bpf_destroy_dsq", NULL },
	{ "scx_bpf_dsq_insert", "scx_bpf_dispatch" },
	{ "scx_bpf_dsq_insert_vtime", "scx_bpf_dispatch_vtime" },
	{ "scx_bpf_dsq_move_to_local", "scx_bpf_consume" },
	{ "scx_bpf_dsq_move", "scx_bpf_dispatch_from_dsq" },
	{ "scx_bpf_dsq_move_set_vtime", "scx_bpf_dispatch_from_dsq_set_vtime" },
	{ "scx_bpf_dsq_move_vtime", "scx_bpf_dispatch_vtime_from_dsq" },
	{ "scx_bpf_dsq_nr_queued", NULL },
	{ "scx_bpf_kick_cpu", NULL },
	{ "scx_bpf_task_cpu", NULL },
	{ "scx_bpf_exit_bstr", NULL },
	{ "scx_bpf_error_bstr", NULL },
	{ "bpf_task_from_pid", NULL },
	{ "bpf_task_release", NULL },
	{ "bpf_rcu_read_lock", NULL },
	{ "bpf_rcu_read_unlock", NULL },
	{ "bpf_iter_scx_dsq_new", NULL },
	{ "bpf_iter_scx_dsq_next", NULL },
	{ "bpf_iter_scx_dsq_destroy", NULL },
};

static bool read_line(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY);
	ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);

	if (fd >= 0)
		close(fd);
	if (n < 0)
		return false;
	text[n] = '\0';
	text[strcspn(text, "\n")] = '\0';
	return true;
}

const char *attached_ops(void)
{
	static char name[192];
	char state[64];

	if (!read_line(SCHED_EXT_DIR "/state", state, sizeof(state)) || !strcmp(state, "disabled"))
		return "";
	if (!read_line(SCHED_EXT_DIR "/root/ops", name, sizeof(name)))
		snprintf(name, sizeof(name), "a scheduler in state %s", state);
	return name;
}

bool is_detaching(void)
{
	char state[64];

	return read_line(SCHED_EXT_DIR "/state", state, sizeof(state)) && !strcmp(state, "disabling");
}

unsigned long long hotplug_seq(void)
{
	char text[32] = "0";

	read_line(SCHED_EXT_DIR "/hotplug_seq", text, sizeof(text));
	return strtoull(text, NULL, 10);
}

/* On a hybrid host the cpu controller is one of cgroup v1, whose cgroups have no tiers. */
static enum temper_status check_controller(void)
{
	char controllers[256];

	if (!read_line(CGROUP_ROOT "/cgroup.controllers", controllers, sizeof(controllers)))
		return fail(TEMPER_NO_CGROUP, "no cgroup v2 at %s; mount it there", CGROUP_ROOT);
	for (char *rest = controllers, *word; (word = strsep(&rest, " "));)
		if (!strcmp(word, "cpu"))
			return TEMPER_OK;
	return fail(TEMPER_NO_CGROUP,
		    "cgroup v2 has no cpu controller; boot without cgroup_disable=cpu, and unmount the cgroup v1 hierarchy that holds it");
}

/* The kernel refuses every scheduler beside these, and only its log says so. */
static enum temper_status check_isolation(void)
{
	char cpus[1024];

	if (!read_line("/sys/devices/system/cpu/isolated", cpus, sizeof(cpus)) || !*cpus)
		return TEMPER_OK;
	return fail(TEMPER_ISOLATED_CPUS,
		    "the kernel was booted with isolcpus=%s, beside which it takes no sched_ext scheduler; boot without it, and set CPUs aside by a fence",
		    cpus);
}

/*
 * What scx_enable() and those before it return errors for. All else that it refuses it tells by ops.exit. 7.0 takes
 * isolated partitions of the cpuset controller for isolcpus=.
 */
enum temper_status attach_refused(int error)
{
	char cpus[1024];

	if (error == EBUSY && *attached_ops())
		return refuse_beside_attached();
	if (error == EINVAL && read_line(CGROUP_ROOT "/cpuset.cpus.isolated", cpus, sizeof(cpus)) && *cpus)
		return fail(TEMPER_LOAD_FAILED,
			    "the kernel takes no sched_ext scheduler beside isolated cpuset partitions, and CPUs %s are in one; write member to cpuset.cpus.partition there, or use a kernel that does (later 7.0)",
			    cpus);
	if (error == EPERM || error == EACCES)
		return fail(TEMPER_LOAD_FAILED, "the kernel does not let this process attach a scheduler: %s; give it CAP_BPF and CAP_SYS_ADMIN, and look for what a security module has denied (dmesg)",
			    strerror(error));
	if (error == ENOMEM)
		return fail(TEMPER_LOAD_FAILED, "the kernel has no memory to attach the scheduler; make some free");
	return fail(TEMPER_LOAD_FAILED, "the kernel refused to attach the scheduler: %s; dmesg may say why", strerror(error));
}

static struct btf *kernel_types(void)
{
	libbpf_print_fn_t print = libbpf_set_print(NULL); /* what it would say, we say in one line */
	struct btf *btf = btf__load_vmlinux_btf();

	libbpf_set_print(print);
	return btf;
}

/* Its id among the kernel's types; below 0: none. */
static int find_function(const struct btf *btf, unsigned i)
{
	int id = btf__find_by_name_kind(btf, functions[i].name, BTF_KIND_FUNC);

	return id < 0 && functions[i].older ? btf__find_by_name_kind(btf, functions[i].older, BTF_KIND_FUNC) : id;
}

/* Whether a function, or with 0 any, has the tag. */
static bool has_kfunc_tag(const struct btf *btf, unsigned function)
{
	for (unsigned id = 1; id < btf__type_cnt(btf); id++) {
		const struct btf_type *type = btf__type_by_id(btf, id);

		if (btf_is_decl_tag(type) && (!function || type->type == function) && !strcmp(btf__name_by_offset(btf, type->name_off), "bpf_kfunc"))
			return true;
	}
	return false;
}

/*
 * The function that a loader cannot link to, since the tag on it is lost; NULL: none. Some builds
 * of a kernel lack tags (Debian's 7.1.13), and libbpf then speaks of an incompatible prototype. Older
 * kernels have no tags at all, and need none.
 */
const char *untagged_function(void)
{
	struct btf *btf = kernel_types();
	bool tagged = btf && has_kfunc_tag(btf, 0);
	const char *found = NULL;

	for (unsigned i = 0; tagged && !found && i < sizeof(functions) / sizeof(*functions); i++) {
		int id = find_function(btf, i);

		if (id > 0 && !has_kfunc_tag(btf, id))
			found = functions[i].name;
	}
	btf__free(btf);
	return found;
}

/* Whether the kernel's enum names a value, such as a flag that came later. */
bool kernel_names_value(const char *type, const char *value)
{
	struct btf *btf = kernel_types();
	int id = btf ? btf__find_by_name_kind(btf, type, BTF_KIND_ENUM64) : -1;
	bool found = false;

	if (btf && id < 0)
		id = btf__find_by_name_kind(btf, type, BTF_KIND_ENUM);
	if (id > 0) {
		const struct btf_type *t = btf__type_by_id(btf, id);

		for (int i = 0; !found && i < btf_vlen(t); i++)
			found = !strcmp(btf__name_by_offset(btf, btf_is_enum(t) ? btf_enum(t)[i].name_off : btf_enum64(t)[i].name_off), value);
	}
	btf__free(btf);
	return found;
}

static bool kernel_has_member(const char *type, const char *member)
{
	struct btf *btf = kernel_types();
	int id = btf ? btf__find_by_name_kind(btf, type, BTF_KIND_STRUCT) : -1;
	const struct btf_type *t = id > 0 ? btf__type_by_id(btf, id) : NULL;
	bool found = false;

	for (int i = 0; t && !found && i < btf_vlen(t); i++)
		found = !strcmp(btf__name_by_offset(btf, btf_members(t)[i].name_off), member);
	btf__free(btf);
	return found;
}

/* Whether a scheduler hears of cpu.max. */
bool kernel_tells_limits(void)
{
	return kernel_has_member("sched_ext_ops", "cgroup_set_bandwidth");
}

/* Whether it can be read where the fair class keeps it. */
bool kernel_keeps_limits(void)
{
	return kernel_has_member("cfs_bandwidth", "quota");
}

static enum temper_status check_types(const char *release)
{
	struct btf *btf = kernel_types();

	if (!btf)
		return fail(TEMPER_BAD_BTF,
			    "kernel %s has no type data in /sys/kernel/btf/vmlinux; use one built with CONFIG_DEBUG_INFO_BTF",
			    release);
	for (unsigned i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
		if (find_function(btf, i) < 0) {
			btf__free(btf);
			return fail(TEMPER_BAD_BTF,
				    "the type data of kernel %s does not name %s, so no loader can link to it; use another kernel build",
				    release, functions[i].name);
		}
	}
	btf__free(btf);
	return TEMPER_OK;
}

enum temper_status check_kernel(void)
{
	struct utsname kernel;

	uname(&kernel);
	if (access(SCHED_EXT_DIR "/state", R_OK))
		return fail(TEMPER_NO_SCHED_EXT, "kernel %s has no sched_ext; use 6.12 or later with CONFIG_SCHED_CLASS_EXT",
			    kernel.release);
	return check_controller() ?: check_isolation() ?: check_types(kernel.release);
}
