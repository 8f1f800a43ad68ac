// SPDX-License-Identifier: GPL-2.0
/* The pins: what holds the scheduler, and lets others reach it, when its loader is gone. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loader.h"

static void pin_path(char *path, size_t size, const char *name)
{
	snprintf(path, size, "%s/%s", options.pin_dir, name);
}

int open_pinned(const char *name)
{
	char path[4096];

	pin_path(path, sizeof(path), name);
	return bpf_obj_get(path);
}

static const char *const pinned_maps[] = { "tiers", "control", "stats", "info", "exit_info", "timers", "limits", "limit_timers", "looks", "hogs", "rt_throttled", "waits", "task_states" };
static const char pinned_program[] = "look_at_cpus";

/* All that is there, so that nothing stays of a version that pinned more. */
void remove_pins(void)
{
	char path[4096];
	struct dirent *entry;
	DIR *dir;

	if (!options.pin_dir || !(dir = opendir(options.pin_dir)))
		return;
	/* The link first: what it releases is not in use any more. */
	pin_path(path, sizeof(path), "link");
	unlink(path);
	while ((entry = readdir(dir))) {
		pin_path(path, sizeof(path), entry->d_name);
		if (entry->d_name[0] != '.')
			unlink(path);
	}
	closedir(dir);
	rmdir(options.pin_dir);
}

enum temper_status pin_maps(struct bpf_object *object)
{
	char path[4096];

	if (!options.pin_dir)
		return TEMPER_OK;
	remove_pins();
	if (mkdir(options.pin_dir, 0700) && errno != EEXIST)
		return fail(TEMPER_LOAD_FAILED, "cannot make %s: %s; 'temper doctor' says why", options.pin_dir, strerror(errno));
	for (unsigned i = 0; i < sizeof(pinned_maps) / sizeof(*pinned_maps); i++) {
		pin_path(path, sizeof(path), pinned_maps[i]);
		if (bpf_obj_pin(bpf_object__find_map_fd_by_name(object, pinned_maps[i]), path))
			return fail(TEMPER_LOAD_FAILED, "cannot pin %s: %s", path, strerror(errno));
	}
	pin_path(path, sizeof(path), pinned_program);
	if (bpf_obj_pin(bpf_program__fd(bpf_object__find_program_by_name(object, pinned_program)), path))
		return fail(TEMPER_LOAD_FAILED, "cannot pin %s: %s", path, strerror(errno));
	return TEMPER_OK;
}

enum temper_status pin_link(struct bpf_link *link, const char *name)
{
	char path[4096];

	if (!options.pin_dir)
		return TEMPER_OK;
	pin_path(path, sizeof(path), name);
	if (bpf_link__pin(link, path))
		return fail(TEMPER_LOAD_FAILED, "cannot pin %s: %s", path, strerror(errno));
	return TEMPER_OK;
}
