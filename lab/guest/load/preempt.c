/* SPDX-License-Identifier: Apache-2.0 */
/*
 * preempt WAKES SEED CPUS: from the load generator's CPU, wakes a critical thread
 * that sleeps on CPU 0, WAKES times, and prints the median and the 99th percentile
 * of the time until it runs. With a spinner on that CPU, a wake-up holds a preemption too.
 */
#include <pthread.h>

#include "load.h"

#define WARM_UP 50 /* wake-ups before those that count */

static int wake[2], woken[2];

static void *sleeper(void *unused)
{
	uint64_t sent, took;

	(void)unused;
	pin(0, 0);
	while (read(wake[0], &sent, sizeof(sent)) == sizeof(sent)) {
		took = now_ns() - sent;
		if (write(woken[1], &took, sizeof(took)) != sizeof(took))
			die("answer");
	}
	return NULL;
}

static int ascending(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static uint64_t wake_once(void)
{
	uint64_t pause = NSEC / 1000 * (0.3 + drand48()); /* in step with no tick */
	uint64_t sent, took;

	sleep_until(now_ns() + pause);
	sent = now_ns();
	if (write(wake[1], &sent, sizeof(sent)) != sizeof(sent) || read(woken[0], &took, sizeof(took)) != sizeof(took))
		die("wake");
	return took;
}

int main(int argc, char **argv)
{
	struct sched_param priority = { .sched_priority = 1 };
	pthread_t thread;
	int wakes;

	if (argc != 4 || (wakes = atoi(argv[1])) < 1)
		die("usage: preempt WAKES SEED CPUS");
	uint64_t *took = calloc(wakes, sizeof(*took));

	if (!took)
		die("memory");
	srand48(atol(argv[2]));
	join_cgroup("critical");
	pin(atoi(argv[3]), atoi(argv[3]));
	if (pipe(wake) || pipe(woken) || pthread_create(&thread, NULL, sleeper, NULL))
		die("sleeper");
	/* Whatever else runs on the generator's CPU must not come between the clock and the wake-up. */
	if (sched_setscheduler(0, SCHED_FIFO, &priority))
		die("SCHED_FIFO");
	for (int i = 0; i < WARM_UP; i++)
		wake_once();
	for (int i = 0; i < wakes; i++)
		took[i] = wake_once();
	qsort(took, wakes, sizeof(*took), ascending);
	printf("p50_ns=%lu p99_ns=%lu\n", took[wakes / 2], took[wakes * 99 / 100]);
	return 0;
}
