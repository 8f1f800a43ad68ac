/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lineage KIND N CGROUP: N tasks of CGROUP want to run at any moment, and each time others, until the cgroup is killed. It
 * prints a line once it has begun.
 *
 * processes	N lines of processes: each computes for 2 ms, starts the next one and ends
 * cgroups	the same, and each process makes itself a cgroup within CGROUP
 * threads	N rings of 100 threads each: each computes for 2 ms, wakes the next one and sleeps
 */
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "load.h"

#define TURN (2 * NSEC / 1000)
#define RING 100

static const char *cgroup;

static void work(void)
{
	struct timespec t;
	uint64_t until = 0;

	for (;;) {
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
		uint64_t now = t.tv_sec * NSEC + t.tv_nsec;

		if (!until)
			until = now + TURN;
		if (now >= until)
			return;
	}
}

static void enter(const char *path)
{
	char procs[256];

	snprintf(procs, sizeof(procs), "%s/cgroup.procs", path);
	int fd = open(procs, O_WRONLY);

	if (fd < 0 || write(fd, "0", 1) != 1)
		die("%s", procs);
	close(fd);
}

/* Those of the links before this one are empty by now, but for one that is about to end. */
static void join_own_cgroup(int line, int link)
{
	char own[256], old[256];

	snprintf(own, sizeof(own), "%s/%d-%d", cgroup, line, link);
	snprintf(old, sizeof(old), "%s/%d-%d", cgroup, line, link - 2);
	if (mkdir(own, 0755))
		die("%s", own);
	enter(own);
	rmdir(old);
}

static void live(int line, bool in_cgroups)
{
	for (int link = 0;; link++) {
		if (in_cgroups)
			join_own_cgroup(line, link);
		work();
		pid_t next = fork();

		if (next < 0)
			die("fork");
		if (next > 0)
			_exit(0);
	}
}

static sem_t turns[RING * MAX_SPINNERS];

static void *take_turns(void *seat)
{
	uintptr_t own = (uintptr_t)seat, next = own / RING * RING + (own + 1) % RING;

	for (;;) {
		while (sem_wait(&turns[own]))
			;
		work();
		sem_post(&turns[next]);
	}
	return NULL;
}

static void begin_rings(int n)
{
	pthread_attr_t small;
	pthread_t thread;

	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 64 * 1024);
	for (uintptr_t seat = 0; seat < (uintptr_t)n * RING; seat++)
		if (sem_init(&turns[seat], 0, 0) || pthread_create(&thread, &small, take_turns, (void *)seat))
			die("thread");
	for (int ring = 0; ring < n; ring++)
		sem_post(&turns[ring * RING]);
}

int main(int argc, char **argv)
{
	if (argc != 4 || atoi(argv[2]) < 1 || atoi(argv[2]) > MAX_SPINNERS)
		die("usage: lineage processes|cgroups|threads N CGROUP");
	bool in_cgroups = !strcmp(argv[1], "cgroups"), threads = !strcmp(argv[1], "threads");
	int n = atoi(argv[2]);

	cgroup = argv[3];
	if (!in_cgroups)
		enter(cgroup);
	/* The links of a line end as children of this process, and nobody waits for them. */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	signal(SIGCHLD, SIG_IGN);
	if (threads)
		begin_rings(n);
	for (int line = 0; line < n && !threads; line++) {
		pid_t first = fork();

		if (first < 0)
			die("fork");
		if (first == 0)
			live(line, in_cgroups);
	}
	if (write(STDOUT_FILENO, "\n", 1) != 1)
		die("write");
	for (;;)
		pause();
}
