/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What all tricks of reach.c share.
 */
#ifndef TEMPER_TRICK_H
#define TEMPER_TRICK_H

#include <sys/stat.h>

#include "trouble.h"

static const char *own; /* the cgroup */

static bool refused;

/* What the kernel must not let it do. */
static void must_fail(bool failed)
{
	refused = true;
	if (!failed) {
		fprintf(stderr, "reach: the kernel has let it\n");
		exit(1);
	}
}

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);

	check(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text), path);
	close(fd);
}

static void write_to(const char *cgroup, const char *file, const char *text)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/%s/%s", own, cgroup, file);
	write_file(path, text);
}

static void make_cgroup(const char *name)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/%s", own, name);
	check(!mkdir(path, 0755) || errno == EEXIST, path);
}

static void spin(void)
{
	compute(10 * SHORT);
}

#endif
