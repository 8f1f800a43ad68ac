// SPDX-License-Identifier: GPL-2.0
/*
 * Attaching, adopting and detaching the scheduler, and what it is told while it runs. The link is pinned: a loader
 * that dies leaves the scheduler attached, and the next one adopts it.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "loader.h"

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

enum temper_status take_control(struct scheduler *s, int control_fd, int tiers_fd)
{
	enum temper_status status = map_control(s, control_fd) ?: map_tiers(tiers_fd);

	if (status)
		return status;
	give_sign_of_life(s);
	reserve(s);
	announce_tiers(s);
	return TEMPER_OK;
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
		status = take_control(s, control_fd, tiers_fd);
	close(info_fd);
	close(control_fd);
	close(tiers_fd);
	if (!status)
		say_attached(true);
	return status;
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

struct rt_throttle_maps maps_for_rt_throttle(struct scheduler *s)
{
	const char *program = "look_at_cpus";

	if (!s->object)
		return (struct rt_throttle_maps){ open_pinned(program), open_pinned("looks"), open_pinned("hogs"), open_pinned("rt_throttled") };
	return (struct rt_throttle_maps){ bpf_program__fd(bpf_object__find_program_by_name(s->object, program)), map_fd(s, "looks"),
				       map_fd(s, "hogs"), map_fd(s, "rt_throttled") };
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
	if (options.pin_dir && rmdir(options.pin_dir) && errno != ENOENT)
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
