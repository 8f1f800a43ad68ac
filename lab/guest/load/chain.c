/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chain: ten services in a row, as processes of two threads, each in a cgroup of
 * its own, joined by pipes. A request is ITERATIONS of computing at each.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "load.h"

#define STAGES 10
#define DRAIN (NSEC / 2) /* how long after the window a late answer still counts */

struct request {
	uint64_t intended, id; /* id: order of sending within the window, or WARM_UP */
};
#define WARM_UP UINT64_MAX

static uint64_t iterations;
static int stage_in, stage_out;
static int pipes[STAGES + 1][2];

static void *serve(void *unused)
{
	struct request r;

	(void)unused;
	while (read(stage_in, &r, sizeof(r)) == sizeof(r)) {
		compute(iterations);
		if (write(stage_out, &r, sizeof(r)) != sizeof(r))
			break;
	}
	return NULL;
}

static pid_t start_stage(int stage, int cpus)
{
	pid_t pid = fork();
	pthread_t other;
	char cgroup[32];

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	snprintf(cgroup, sizeof(cgroup), "critical/s%d", stage);
	join_cgroup(cgroup);
	pin(0, cpus - 1);
	stage_in = pipes[stage][0];
	stage_out = pipes[stage + 1][1];
	if (pthread_create(&other, NULL, serve, NULL))
		die("thread");
	serve(NULL);
	_exit(0);
}

static struct window window;

static void *collect(void *unused)
{
	struct request r;

	(void)unused;
	while (read(pipes[STAGES][0], &r, sizeof(r)) == sizeof(r))
		if (r.id != WARM_UP)
			window.latency[r.id] = now_ns() - r.intended;
	return NULL;
}

static void offer(struct arrivals *a, struct work_slot *work)
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
		struct request r = { at, begun ? window.sent++ : WARM_UP };

		if (write(pipes[0][1], &r, sizeof(r)) != sizeof(r))
			die("send");
	}
	sleep_until(window.end);
	window.last = take_sample(work);
}

int main(int argc, char **argv)
{
	pid_t pids[STAGES];
	pthread_t collector;

	if (argc != 9)
		die("usage: chain RATE ITERATIONS WARM_UP_S SECONDS SEED BURSTY CPUS LATENCY_FILE");
	struct arrivals a = { .rate = atof(argv[1]), .bursty = atoi(argv[6]) };
	double warm_up = atof(argv[3]), seconds = atof(argv[4]);
	int cpus = atoi(argv[7]);

	iterations = strtoull(argv[2], NULL, 10);
	srand48(atol(argv[5]));
	for (int i = 0; i <= STAGES; i++)
		if (pipe(pipes[i]))
			die("pipe");
	for (int i = 0; i < STAGES; i++)
		pids[i] = start_stage(i, cpus);
	pin(cpus, cpus);
	struct work_slot *work = map_work();

	a.start = now_ns() + NSEC / 5;
	open_window(&window, a.start, warm_up, seconds, a.rate);
	if (pthread_create(&collector, NULL, collect, NULL))
		die("thread");
	offer(&a, work);
	sleep_until(window.end + DRAIN);
	report(&window, argv[8]);
	for (int i = 0; i < STAGES; i++)
		kill(pids[i], SIGKILL);
	while (wait(NULL) > 0)
		;
	return 0;
}
