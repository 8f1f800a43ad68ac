// SPDX-License-Identifier: GPL-2.0
/*
 * Loading, attaching, pinning and adopting the scheduler. The link is pinned: a loader
 * that dies leaves the scheduler attached, and the next one adopts it.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "loader.h"

static const unsigned char bpf_sha256[32] =
#include "temper.sha256.h"
	;

/* The BPF object, carried in the loader so that the two cannot be of different builds. */
__asm__(".pushsection .rodata\n"
	".balign 16\n"
	"object_start: .incbin \"" TEMPER_OBJECT "\"\n"
	"object_end: .popsection\n");
extern const char object_start[], object_end[];

static const unsigned zero;

static void pin_path(char *path, size_t size, const char *name)
{
	snprintf(path, size, "%s/%s", options.pin_dir, name);
}

static int open_pinned(const char *name)
{
	char path[4096];

	pin_path(path, sizeof(path), name);
	return bpf_obj_get(path);
}

static const char *const pinned_maps[] = { "tiers", "control", "stats", "info", "exit_info", "timers", "handoffs" };
#define NR_PINNED_MAPS (sizeof(pinned_maps) / sizeof(*pinned_maps))

void remove_pins(void)
{
	char path[4096];

	if (!options.pin_dir)
		return;
	pin_path(path, sizeof(path), "link");
	unlink(path);
	for (unsigned i = 0; i < NR_PINNED_MAPS; i++) {
		pin_path(path, sizeof(path), pinned_maps[i]);
		unlink(path);
	}
	rmdir(options.pin_dir);
}

static unsigned long long monotonic_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

enum temper_status change_control(int fd, bool tiers_changed)
{
	struct temper_control c;

	if (bpf_map_lookup_elem(fd, &zero, &c))
		return fail(TEMPER_FAILED, "cannot read map control: %s", strerror(errno));
	c.heartbeat_ns = monotonic_ns();
	c.tier_gen += tiers_changed;
	if (bpf_map_update_elem(fd, &zero, &c, BPF_ANY))
		return fail(TEMPER_FAILED, "cannot write map control: %s", strerror(errno));
	return TEMPER_OK;
}

static enum temper_status map_tiers(int tiers_fd)
{
	for (int i = 0; i < options.nr_mapped; i++) {
		const struct mapping *m = &options.mapped[i];
		unsigned tier = m->tier;
		unsigned long long id;
		struct stat st;

		if (stat(m->cgroup, &st) || !S_ISDIR(st.st_mode))
			return fail(TEMPER_CONFIG, "--tier: no cgroup %s: %s", m->cgroup, strerror(errno ?: ENOTDIR));
		id = st.st_ino; /* on a 64-bit kernel the inode of a cgroup's directory is its id */
		if (bpf_map_update_elem(tiers_fd, &id, &tier, BPF_ANY))
			return fail(TEMPER_FAILED, "cannot map %s: %s", m->cgroup, strerror(errno));
	}
	return TEMPER_OK;
}

bool adopt(struct scheduler *s)
{
	int info_fd, tiers_fd;
	struct temper_info info;
	bool same;

	if (!options.pin_dir || strcmp(attached_ops(), TEMPER_OPS_NAME))
		return false;
	info_fd = open_pinned("info");
	if (info_fd < 0)
		return false;
	same = !bpf_map_lookup_elem(info_fd, &zero, &info) && info.abi == TEMPER_ABI &&
	       !memcmp(info.bpf_sha256, bpf_sha256, sizeof(bpf_sha256)) &&
	       info.system_share_pct == options.system_share_pct &&
	       info.heartbeat_timeout_ms == options.heartbeat_timeout_s * 1000;
	if (same) {
		info.loader_pid = getpid();
		bpf_map_update_elem(info_fd, &zero, &info, BPF_ANY);
	}
	close(info_fd);
	if (!same)
		return false;
	s->control_fd = open_pinned("control");
	s->exit_fd = open_pinned("exit_info");
	tiers_fd = open_pinned("tiers");
	if (s->control_fd < 0 || s->exit_fd < 0 || tiers_fd < 0)
		return false;
	return map_tiers(tiers_fd) == TEMPER_OK && change_control(s->control_fd, true) == TEMPER_OK;
}

static int map_fd(struct scheduler *s, const char *name)
{
	return bpf_object__find_map_fd_by_name(s->object, name);
}

static enum temper_status describe(struct scheduler *s, bool limits_ignored)
{
	struct temper_info info = {
		.abi = TEMPER_ABI,
		.nr_cpus = libbpf_num_possible_cpus(),
		.heartbeat_timeout_ms = options.heartbeat_timeout_s * 1000,
		.system_share_pct = options.system_share_pct,
		.limits_ignored = limits_ignored,
		.loader_pid = getpid(),
	};

	memcpy(info.bpf_sha256, bpf_sha256, sizeof(bpf_sha256));
	if (bpf_map_update_elem(map_fd(s, "info"), &zero, &info, BPF_ANY))
		return fail(TEMPER_FAILED, "cannot write map info: %s", strerror(errno));
	return TEMPER_OK;
}

static enum temper_status pin_maps(struct scheduler *s)
{
	char path[4096];

	if (!options.pin_dir)
		return TEMPER_OK;
	remove_pins();
	if (mkdir(options.pin_dir, 0700) && errno != EEXIST)
		return fail(TEMPER_LOAD_FAILED, "cannot make %s: %s; is bpffs mounted?", options.pin_dir, strerror(errno));
	for (unsigned i = 0; i < NR_PINNED_MAPS; i++) {
		pin_path(path, sizeof(path), pinned_maps[i]);
		if (bpf_obj_pin(map_fd(s, pinned_maps[i]), path))
			return fail(TEMPER_LOAD_FAILED, "cannot pin %s: %s", path, strerror(errno));
	}
	return TEMPER_OK;
}

static enum temper_status configure(struct scheduler *s)
{
	struct bpf_map *map = bpf_object__find_map_by_name(s->object, ".rodata.config");
	size_t size = 0;
	struct temper_config *config = map ? bpf_map__initial_value(map, &size) : NULL;

	if (!config || size < sizeof(*config))
		return fail(TEMPER_LOAD_FAILED, "the BPF object has no place for its configuration");
	*config = (struct temper_config){
		.nr_cpus = libbpf_num_possible_cpus(),
		.system_share_pct = options.system_share_pct,
		/* Without a pin it cannot be orphaned. */
		.heartbeat_timeout_ns = options.pin_dir ? options.heartbeat_timeout_s * 1000000000ull : 0,
	};
	return TEMPER_OK;
}

enum temper_status load(struct scheduler *s, bool limits_ignored)
{
	LIBBPF_OPTS(bpf_object_open_opts, open_options, .object_name = "temper");
	enum temper_status status;

	s->object = bpf_object__open_mem(object_start, object_end - object_start, &open_options);
	if (!s->object)
		return fail(TEMPER_LOAD_FAILED, "cannot open the BPF object: %s", strerror(errno));
	if ((status = configure(s)))
		return status;
	if (bpf_object__load(s->object))
		return fail(TEMPER_LOAD_FAILED, "the kernel refused the programs: %s; --verbose shows why", strerror(errno));
	s->control_fd = map_fd(s, "control");
	s->exit_fd = map_fd(s, "exit_info");
	return describe(s, limits_ignored) ?: map_tiers(map_fd(s, "tiers")) ?: change_control(s->control_fd, true) ?: pin_maps(s);
}

enum temper_status attach(struct scheduler *s)
{
	char path[4096];

	s->link = bpf_map__attach_struct_ops(bpf_object__find_map_by_name(s->object, "temper_ops"));
	if (!s->link)
		return fail(TEMPER_LOAD_FAILED, "the kernel refused to attach the scheduler: %s", strerror(errno));
	if (!options.pin_dir)
		return TEMPER_OK;
	pin_path(path, sizeof(path), "link");
	if (bpf_link__pin(s->link, path))
		return fail(TEMPER_LOAD_FAILED, "cannot pin %s: %s", path, strerror(errno));
	return TEMPER_OK;
}

/* Unpinning a link that nobody holds detaches the scheduler; the kernel is done when the state says so. */
void detach(struct scheduler *s)
{
	struct temper_exit_info info = {};

	remove_pins();
	bpf_link__destroy(s->link);
	s->link = NULL;
	for (int i = 0; i < 100 && !bpf_map_lookup_elem(s->exit_fd, &zero, &info) && !info.kind; i++)
		usleep(10000);
}

void release(struct scheduler *s)
{
	if (s->link) {
		/* Destroying a pinned link without this would detach the scheduler. */
		bpf_link__disconnect(s->link);
		bpf_link__destroy(s->link);
	}
	bpf_object__close(s->object);
}
