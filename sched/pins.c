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

/* All that is there, so that nothing stays of a version that pinned more. The folder stays: we have it locked (claim.c). */
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
}

/* Moves a folder away that another user has made there, with what is in it. */
static enum temper_status move_aside(const struct stat *theirs)
{
	char aside[4096]; /* bpffs has no dots in names */

	snprintf(aside, sizeof(aside), "%s-not-ours-%llu", options.pin_dir, (unsigned long long)theirs->st_ino);
	if (!rename(options.pin_dir, aside))
		note("user %u had made %s; it is %s now", theirs->st_uid, options.pin_dir, aside);
	else if (errno != ENOENT)
		return fail(TEMPER_LOAD_FAILED, "user %u has made %s, and it cannot be moved: %s; remove it", theirs->st_uid, options.pin_dir, strerror(errno));
	return TEMPER_OK;
}

enum temper_status make_pin_dir(void)
{
	enum { TRIES = 100 }; /* of somebody who makes it again each time */
	struct stat st;

	for (int i = 0; i < TRIES; i++) {
		enum temper_status status;

		if (mkdir(options.pin_dir, 0700) && errno != EEXIST)
			return fail(TEMPER_LOAD_FAILED, "cannot make %s: %s; 'temper doctor' says why", options.pin_dir, strerror(errno));
		if (lstat(options.pin_dir, &st))
			continue; /* a loader that ends has removed it */
		if (S_ISDIR(st.st_mode) && st.st_uid == geteuid())
			return chmod(options.pin_dir, 0700) && errno != ENOENT ?
				       fail(TEMPER_LOAD_FAILED, "cannot close %s to others: %s", options.pin_dir, strerror(errno)) :
				       TEMPER_OK;
		status = move_aside(&st);
		if (status)
			return status;
	}
	return fail(TEMPER_LOAD_FAILED, "others make %s again and again; mount bpffs with mode=0700", options.pin_dir);
}

enum temper_status pin_maps(struct bpf_object *object)
{
	enum temper_status status;
	char path[4096];

	if (!options.pin_dir)
		return TEMPER_OK;
	remove_pins();
	status = make_pin_dir();
	if (status)
		return status;
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
