/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chain: ten services in a row, as processes of two threads, each in a cgroup of
 * its own, joined by pipes. A request is ITERATIONS of computing at each.
 */
#include "pipe.h"

#define STAGES 10

static int pipes[STAGES + 1][2];

static pid_t start_stage(int stage, uint64_t iterations, int cpus)
{
	char cgroup[32];
	struct server s = { pipes[stage][0], pipes[stage + 1][1], .threads = 2, iterations, cgroup };

	snprintf(cgroup, sizeof(cgroup), "critical/s%d", stage);
	return start_server(&s, cpus);
}

int main(int argc, char **argv)
{
	pid_t pids[STAGES];
	pthread_t collector;

	if (argc != 9)
		die("usage: chain RATE ITERATIONS WARM_UP_S SECONDS SEED BURSTY CPUS LATENCY_FILE");
	struct arrivals a = { .rate = atof(argv[1]), .bursty = atoi(argv[6]) };
	int cpus = atoi(argv[7]);

	srand48(atol(argv[5]));
	for (int i = 0; i <= STAGES; i++)
		if (pipe(pipes[i]))
			die("pipe");
	for (int i = 0; i < STAGES; i++)
		pids[i] = start_stage(i, strtoull(argv[2], NULL, 10), cpus);
	pin(cpus, cpus);
	struct work_slot *work = map_work();
	struct client client = { pipes[0][1], pipes[STAGES][0], .closed_loop = false };

	a.start = now_ns() + NSEC / 5;
	open_window(&window, a.start, atof(argv[3]), atof(argv[4]), a.rate);
	if (pthread_create(&collector, NULL, collect, &client))
		die("thread");
	offer(&client, &a, work);
	sleep_until(window.end + DRAIN);
	report(&window, argv[8]);
	end_servers(pids, STAGES);
	return 0;
}
