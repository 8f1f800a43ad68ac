/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crowd THREADS FIRST LAST: so many threads that compute without an end on CPUs FIRST to LAST. Says "\n" once all are there, and
 * has them begin when its input ends: before that, each would have the next come later.
 */
#include <pthread.h>

#include "load.h"

enum { STACK = 64 << 10 };

static pthread_barrier_t begin;

static void *spin(void *unused)
{
	pthread_barrier_wait(&begin);
	for (;;)
		compute(1000);
	return unused;
}

int main(int argc, char **argv)
{
	pthread_attr_t attr;
	pthread_t thread;
	char byte;

	errno = EINVAL;
	if (argc != 4)
		die("usage: crowd THREADS FIRST LAST");
	pin(atoi(argv[2]), atoi(argv[3]));
	if (pthread_attr_init(&attr) || pthread_attr_setstacksize(&attr, STACK) || pthread_barrier_init(&begin, NULL, atoi(argv[1]) + 1))
		die("thread attributes");
	for (int i = 0; i < atoi(argv[1]); i++)
		if ((errno = pthread_create(&thread, &attr, spin, NULL)))
			die("thread %d", i);
	if (write(STDOUT_FILENO, "\n", 1) != 1)
		die("stdout");
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	pthread_barrier_wait(&begin);
	pause();
}
