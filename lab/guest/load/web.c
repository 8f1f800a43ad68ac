/* SPDX-License-Identifier: Apache-2.0 */
/*
 * web: a server that computes, with a pool of THREADS threads for each application CPU. A request
 * is ITERATIONS of computing by whichever thread takes it. Open loop; with RATE 0, closed loop,
 * OUTSTANDING requests under way for each CPU: at full load an open loop has no steady latency.
 */
#include "pipe.h"

#define THREADS 4
#define OUTSTANDING 2
#define MOST_RATE 20000 /* answers a second that a closed loop has room for */

int main(int argc, char **argv)
{
	int requests[2], answers[2];
	pthread_t collector;

	if (argc != 9)
		die("usage: web RATE ITERATIONS WARM_UP_S SECONDS SEED BURSTY CPUS LATENCY_FILE");
	struct arrivals a = { .rate = atof(argv[1]), .bursty = atoi(argv[6]) };
	bool closed_loop = a.rate == 0;
	int cpus = atoi(argv[7]);

	srand48(atol(argv[5]));
	if (pipe(requests) || pipe(answers))
		die("pipe");
	struct server server = { requests[0], answers[1], THREADS * cpus, strtoull(argv[2], NULL, 10), "critical" };
	struct client client = { requests[1], answers[0], closed_loop };
	pid_t pid = start_server(&server, cpus);

	pin(cpus, cpus);
	struct work_slot *work = map_work();

	a.start = now_ns() + NSEC / 5;
	open_window(&window, a.start, atof(argv[3]), atof(argv[4]), closed_loop ? MOST_RATE : a.rate);
	if (pthread_create(&collector, NULL, collect, &client))
		die("thread");
	if (closed_loop)
		keep_busy(&client, OUTSTANDING * cpus, a.start, work);
	else
		offer(&client, &a, work);
	sleep_until(window.end + DRAIN);
	report(&window, argv[8]);
	end_servers(&pid, 1);
	return 0;
}
