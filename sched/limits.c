// SPDX-License-Identifier: GPL-2.0
/*
 * CPU limits. While a sched_ext scheduler is attached the kernel does not enforce cpu.max. This scheduler does,
 * where the kernel tells it of them, from 6.17 on, and before that by reading them (kernel_limits.bpf.h); elsewhere a node with
 * limits is left alone.
 */
#define _XOPEN_SOURCE 700
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>

#include "loader.h"

#define RESERVED_SLOTS 2048 /* as in tier.bpf.h */

static int nr_limited, of_root, of_users;
static char example[4096];

static int look_at(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	char quota[32] = "";
	FILE *f;

	if (type == FTW_D)
		++*(st->st_uid ? &of_users : &of_root);
	if (type != FTW_F || strcmp(path + ftw->base, "cpu.max"))
		return 0;
	f = fopen(path, "r");
	if (!f)
		return errno == ENOENT ? 0 : -1; /* a cgroup that went away has no limit */
	if (fscanf(f, "%31s", quota) != 1 && ferror(f) && errno != ENODEV) {
		fclose(f);
		return -1;
	}
	fclose(f);
	if (quota[0] && strcmp(quota, "max") && !nr_limited++)
		snprintf(example, sizeof(example), "%s", path);
	return 0;
}

/* Of the node; 0 where the kernel does not say. */
static int count_cgroups(void)
{
	FILE *f = fopen(CGROUP_ROOT "/cgroup.stat", "r");
	int descendants = -1;

	if (f) {
		if (fscanf(f, "nr_descendants %d", &descendants) != 1)
			descendants = -1;
		fclose(f);
	}
	return descendants + 1;
}

bool limits_are_read(void)
{
	return options.read_limits || !kernel_tells_limits();
}

/*
 * Whether all cgroups of root's are known, in whatever order they come. A user's that are not keep to their parents' limits, and
 * run as background, so nobody gains by making many, and nobody has the scheduler refused by it.
 */
static bool know_those_of_root(void)
{
	int most = TEMPER_MAX_CGROUPS - RESERVED_SLOTS; /* slot 0, which is nobody's, is among the reserved */

	return of_root + (of_users < most ? of_users : most) < TEMPER_MAX_CGROUPS;
}

enum temper_status choose_limits(enum temper_limits *limits)
{
	bool known = !limits_are_read() || kernel_keeps_limits();
	int cgroups = count_cgroups();

	*limits = known ? options.limits : LIMITS_IGNORE;
	if (*limits != LIMITS_IGNORE && cgroups < TEMPER_MAX_CGROUPS)
		return TEMPER_OK;
	nr_limited = of_root = of_users = 0;
	if (nftw(CGROUP_ROOT, look_at, 32, FTW_PHYS | FTW_MOUNT))
		return fail(TEMPER_NO_CGROUP, "cannot read CPU limits below %s: %s", CGROUP_ROOT, strerror(errno));
	if (!nr_limited)
		return TEMPER_OK;
	if (options.limits == LIMITS_IGNORE) {
		note("%d cgroups have a CPU limit that is NOT kept from now on, %s the first", nr_limited, example);
		return TEMPER_OK;
	}
	if (known && know_those_of_root()) {
		note("of the node's %d cgroups only %d can be known; %d are of users, and what is not known runs as background", cgroups,
		     TEMPER_MAX_CGROUPS - 1, of_users);
		return TEMPER_OK;
	}
	if (known)
		return fail(TEMPER_LIMITS_PRESENT,
			    "%d cgroups have a CPU limit, %s the first, and of the node's %d cgroups, %d of them root's, only %d can be known; "
			    "remove some, or say --limits ignore",
			    nr_limited, example, cgroups, of_root, TEMPER_MAX_CGROUPS - 1);
	return fail(TEMPER_LIMITS_PRESENT,
		    "%d cgroups have a CPU limit, %s the first, and this kernel neither tells a scheduler of them (6.17 and later do) "
		    "nor has cfs_bandwidth.quota among its types; lift them, or say --limits ignore",
		    nr_limited, example);
}
