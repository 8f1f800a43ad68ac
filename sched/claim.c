// SPDX-License-Identifier: GPL-2.0
/*
 * One loader at a time.
 *
 * Problem: while a loader is loading, which takes seconds, the kernel does not tell that it is there. An agent that dies
 * in that time leaves one, and its successor starts another: each then removes what the other has pinned, neither stays
 * attached, and the agent falls to a lower rung for its backoff.
 *
 * Method: a lock on the folder of the pins, kept until the process ends, however it ends. Whoever finds it taken
 * waits: a loader that was left alone leaves as soon as it has attached, and the scheduler that it leaves can be adopted.
 * One that has attached and stays is somebody's, and means a refusal. Who ends may remove the folder, so whoever gets the lock
 * looks whether it is still that one. It is root's alone: whoever can open a folder can lock it, and keep all loaders away.
 *
 * Limits: loaders with pins in other folders, or without, do not meet here; the kernel lets only one of them attach.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loader.h"

#define LOOK_EVERY_US 10000
#define LOOKS_OF_ONE_THAT_STAYS 100 /* a second: it hears of its agent's death within POLL_MS */
#define LOOKS_OF_ONE_THAT_HANGS 12000 /* two minutes: an emulated machine takes half of one to load */

/* Until the lock is ours, or its holder has stayed attached, or not, for so many looks. */
static enum temper_status await_lock(int folder)
{
	bool said = false;

	for (int looks = 0, attached = 0; flock(folder, LOCK_EX | LOCK_NB); looks++) {
		if (errno != EWOULDBLOCK)
			return fail(TEMPER_FAILED, "cannot lock %s: %s", options.pin_dir, strerror(errno));
		attached = *attached_ops() ? attached + 1 : 0;
		if (attached == LOOKS_OF_ONE_THAT_STAYS)
			return refuse_beside_attached();
		if (looks == LOOKS_OF_ONE_THAT_HANGS)
			return fail(TEMPER_OTHER_SCHEDULER, "another scx_temper neither attaches nor ends; end it first");
		if (!attached && !said) {
			note("another scx_temper is attaching or leaving; waiting for it");
			said = true;
		}
		usleep(LOOK_EVERY_US);
	}
	return TEMPER_OK;
}

static bool is_the_pin_dir(int folder)
{
	struct stat ours, there;

	return !fstat(folder, &ours) && !stat(options.pin_dir, &there) && ours.st_dev == there.st_dev && ours.st_ino == there.st_ino;
}

static void remove_if_empty(void)
{
	rmdir(options.pin_dir);
}

enum temper_status become_the_only_loader(void)
{
	enum temper_status status = TEMPER_OK;

	if (!options.pin_dir)
		return TEMPER_OK;
	if (mkdir(options.pin_dir, 0700) && errno != EEXIST)
		return TEMPER_OK; /* nobody to meet there: pin_maps() will say why, if nothing else is wrong */
	atexit(remove_if_empty);
	while (!(status = make_pin_dir())) {
		int folder = open(options.pin_dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

		if (folder < 0 && errno == ENOENT)
			continue; /* who had it has ended */
		if (folder < 0)
			return fail(TEMPER_FAILED, "cannot open %s: %s", options.pin_dir, strerror(errno));
		status = await_lock(folder);
		if (status || is_the_pin_dir(folder))
			break; /* never closed: the lock ends with the process */
		close(folder);
	}
	return status;
}
