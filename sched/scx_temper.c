// SPDX-License-Identifier: GPL-2.0
/*
 * scx_temper loads the scheduler, attaches it, and stays to give it signs of life and
 * to say why it left.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "loader.h"

#define RESTART_ASKED (1LL << 48) /* SCX_ECODE_ACT_RESTART */
#define POLL_MS 100

static sigset_t signals; /* that watch() waits for */
static const unsigned zero;

static int print_libbpf(enum libbpf_print_level level, const char *format, va_list args)
{
	return level == LIBBPF_WARN || options.verbose ? vfprintf(stderr, format, args) : 0;
}

/* Stay until a signal comes or the scheduler leaves. */
static enum temper_status watch(struct scheduler *s)
{
	const struct timespec pause = { .tv_nsec = POLL_MS * 1000000l };
	struct temper_exit_info info = {};

	for (;;) {
		int signal = sigtimedwait(&signals, NULL, &pause);

		if (signal == SIGUSR1) {
			note("leaving; the scheduler stays for %u s", options.heartbeat_timeout_s);
			return TEMPER_OK;
		}
		if (signal > 0) {
			detach(s);
			return TEMPER_OK;
		}
		if (bpf_map_lookup_elem(s->exit_fd, &zero, &info))
			return fail(TEMPER_FAILED, "cannot read map exit_info: %s", strerror(errno));
		if (info.kind) {
			say_exited(&info);
			detach(s);
			return info.exit_code & RESTART_ASKED ? TEMPER_EXIT_HOTPLUG : TEMPER_EJECTED;
		}
		give_sign_of_life(s);
	}
}

static enum temper_status run(void)
{
	struct scheduler s = { .exit_fd = -1 };
	enum temper_status status;
	bool adopted;

	if ((status = check_kernel()) || (status = choose_limits(&s.limits)) || (status = take_over(&s, &adopted)))
		return status;
	if (!adopted) {
		status = load(&s) ?: attach(&s);
		if (status == TEMPER_EXIT_HOTPLUG)
			detach(&s);
		else if (status)
			remove_pins();
		else if (!has_left(&s))
			say_attached(false);
	}
	if (!status && (status = start_rt_throttle(maps_for_rt_throttle(&s))))
		detach(&s);
	if (!status)
		status = watch(&s);
	stop_rt_throttle();
	release(&s);
	return status;
}

/* What can be known of the options and this node before anything is loaded. */
static enum temper_status check(void)
{
	static struct temper_topology topology;
	enum temper_limits limits;
	unsigned nr_cpus, llcs;
	bool smt;

	return check_kernel() ?: choose_limits(&limits) ?: check_cgroups() ?: read_cpu_ids(&nr_cpus) ?: read_topology(&topology, nr_cpus, &smt, &llcs);
}

int main(int argc, char **argv)
{
	enum temper_status status;

	parse_options(argc, argv);
	if (geteuid())
		return fail(TEMPER_NOT_ROOT, "loading a scheduler takes root; use sudo");
	if (options.check)
		return check();
	if ((status = become_the_only_loader()))
		return status;
	give_back_what_is_left();
	/* From here on, one that comes while the scheduler is loading waits for watch(). */
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGUSR1);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	libbpf_set_print(print_libbpf);
	status = start_guard();
	if (status)
		return status;
	if (options.detach)
		return detach_orphan();
	while ((status = run()) == TEMPER_EXIT_HOTPLUG)
		note("CPUs have come or gone; attaching again");
	return status;
}
