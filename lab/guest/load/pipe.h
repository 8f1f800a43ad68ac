/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A service behind pipes: its threads take requests from one pipe and leave answers in another. The
 * generator, on a CPU of its own, sends into the first and collects from the last.
 */
#ifndef TEMPER_PIPE_H
#define TEMPER_PIPE_H

#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "load.h"

#define DRAIN (NSEC / 2) /* how long after the window a late answer still counts */

struct request {
	uint64_t intended, id; /* id: order of sending within the window, or WARM_UP */
};
#define WARM_UP UINT64_MAX

struct server {
	int in, out, threads;
	uint64_t iterations; /* of a request */
	const char *cgroup;
};

static void *serve(void *arg)
{
	struct server *s = arg;
	struct request r;

	while (read(s->in, &r, sizeof(r)) == sizeof(r)) {
		compute(s->iterations);
		if (write(s->out, &r, sizeof(r)) != sizeof(r))
			break;
	}
	return NULL;
}

static inline pid_t start_server(struct server *s, int cpus)
{
	pid_t pid = fork();
	pthread_t other;

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	join_cgroup(s->cgroup);
	pin(0, cpus - 1);
	adopt_policy();
	for (int i = 1; i < s->threads; i++)
		if (pthread_create(&other, NULL, serve, s))
			die("thread");
	serve(s);
	_exit(0);
}

static struct window window;

/* The generator's ends, and whether each answer calls for the next request. */
struct client {
	int to, from;
	bool closed_loop;
};

static inline void send_request(struct client *c, uint64_t at, bool counts)
{
	struct request r = { at, counts ? window.sent++ : WARM_UP };

	if (write(c->to, &r, sizeof(r)) != sizeof(r))
		die("send");
}

static void *collect(void *arg)
{
	struct client *c = arg;
	struct request r;

	while (read(c->from, &r, sizeof(r)) == sizeof(r)) {
		uint64_t at = now_ns();

		if (r.id != WARM_UP)
			window.latency[r.id] = at - r.intended;
		if (c->closed_loop && at < window.end && window.sent < window.capacity)
			send_request(c, at, at >= window.begin);
	}
	return NULL;
}

static inline void offer(struct client *c, struct arrivals *a, struct work_slot *work)
{
	bool begun = false;

	for (;;) {
		uint64_t at = next_arrival(a);

		if (!begun && at >= window.begin) {
			begun = true;
			sleep_until(window.begin);
			window.first = take_sample(work);
		}
		if (at >= window.end || window.sent == window.capacity)
			break;
		sleep_until(at);
		send_request(c, at, begun);
	}
	sleep_until(window.end);
	window.last = take_sample(work);
}

/* As many requests under way as asked for, whatever the service takes for each. */
static inline void keep_busy(struct client *c, int outstanding, uint64_t start, struct work_slot *work)
{
	sleep_until(start);
	for (int i = 0; i < outstanding; i++)
		send_request(c, now_ns(), false);
	sleep_until(window.begin);
	window.first = take_sample(work);
	sleep_until(window.end);
	window.last = take_sample(work);
}

static inline void end_servers(pid_t *pids, int n)
{
	for (int i = 0; i < n; i++)
		kill(pids[i], SIGKILL);
	while (wait(NULL) > 0)
		;
}

#endif
