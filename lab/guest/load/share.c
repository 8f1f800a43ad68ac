/* SPDX-License-Identifier: Apache-2.0 */
/*
 * share LOCK FILE: has a lock half of the time, for 0.1 ms of CPU time at once, until it is killed. It prints a line once it has begun.
 * share LOCK FILE TIMES: takes and gives the lock so often, each 10 ms or so, and prints how long that took.
 *
 * LOCK is one that the kernel does not know the owner of, or knows and does not tell the scheduler:
 *
 * none		computes, without a lock
 * mutex	a mutex of processes that share FILE
 * inheriting	the same, with priority inheritance
 * file		FILE's lock by flock()
 * cgroup	the kernel's per-CPU rwsem that fork() takes to read, and moving a process to write: FILE is a folder of
 *		cgroups, of which the process is moved between a and b
 */
#include "late.h"
#include <pthread.h>
#include <sys/file.h>
#include <sys/wait.h>

#define HELD (NSEC / 10000)

static pthread_mutex_t *mutex;
static int file, groups[2];

static uint64_t cpu_time_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * NSEC + t.tv_nsec;
}

static void work(void)
{
	for (uint64_t until = cpu_time_ns() + HELD; cpu_time_ns() < until;)
		;
}

static void nothing(void)
{
}

static void prepare_nothing(const char *path)
{
	(void)path;
}

/* A mutex in a file that is all zeros is one already: who comes first gives it its kind. */
static void map_mutex(const char *path, int protocol)
{
	int fd = open(path, O_RDWR | O_CREAT, 0600);
	pthread_mutexattr_t kind;

	if (fd < 0 || flock(fd, LOCK_EX) || ftruncate(fd, sizeof(*mutex)))
		die("%s", path);
	mutex = mmap(NULL, sizeof(*mutex), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (mutex == MAP_FAILED)
		die("map %s", path);
	if (mutex->__data.__kind == 0) {
		pthread_mutexattr_init(&kind);
		pthread_mutexattr_setpshared(&kind, PTHREAD_PROCESS_SHARED);
		pthread_mutexattr_setprotocol(&kind, protocol);
		pthread_mutex_init(mutex, &kind);
	}
	flock(fd, LOCK_UN); /* a mapping keeps it beyond close() */
	close(fd);
}

static void prepare_mutex(const char *path)
{
	map_mutex(path, PTHREAD_PRIO_NONE);
}

static void prepare_inheriting(const char *path)
{
	map_mutex(path, PTHREAD_PRIO_INHERIT);
}

static void take_mutex(void)
{
	if (pthread_mutex_lock(mutex))
		die("the mutex");
}

static void give_mutex(void)
{
	pthread_mutex_unlock(mutex);
}

static void prepare_file(const char *path)
{
	file = open(path, O_RDWR | O_CREAT, 0600);
	if (file < 0)
		die("%s", path);
}

static void take_file(void)
{
	if (flock(file, LOCK_EX))
		die("flock");
}

static void give_file(void)
{
	flock(file, LOCK_UN);
}

static void prepare_cgroup(const char *path)
{
	static const char *const names[] = { "a", "b" };

	for (int i = 0; i < 2; i++) {
		char procs[512];

		snprintf(procs, sizeof(procs), "%s/%s/cgroup.procs", path, names[i]);
		groups[i] = open(procs, O_WRONLY);
	}
}

static void move(void)
{
	static int now;

	now = !now;
	if (write(groups[now], "0", 1) != 1)
		die("move");
}

static void fork_one(void)
{
	pid_t child = fork();

	if (child == 0)
		_exit(0);
	if (child < 0 || waitpid(child, NULL, 0) != child)
		die("fork");
}

static const struct lock {
	const char *name;
	void (*prepare)(const char *path);
	void (*take)(void), (*give)(void); /* of who asks for it */
	void (*have)(void), (*leave)(void); /* of who has it */
} locks[] = {
	{ "none", prepare_nothing, nothing, nothing, nothing, nothing },
	{ "mutex", prepare_mutex, take_mutex, give_mutex, take_mutex, give_mutex },
	{ "inheriting", prepare_inheriting, take_mutex, give_mutex, take_mutex, give_mutex },
	{ "file", prepare_file, take_file, give_file, take_file, give_file },
	{ "cgroup", prepare_cgroup, fork_one, nothing, move, nothing },
};

static void have_it(const struct lock *l)
{
	l->have();
	printf("begun\n");
	fflush(stdout);
	for (;;) {
		work();
		l->leave();
		work();
		l->have();
	}
}

static void ask_for_it(const struct lock *l, int times)
{
	uint64_t *took = calloc(times + 1, sizeof(*took));

	if (!took)
		die("memory");
	for (int i = 0; i < times; i++) {
		uint64_t until = now_ns() + NSEC / 100 * (0.5 + drand48());

		sleep_until(until);
		l->take();
		l->give();
		took[i] = now_ns() - until;
	}
	print_times(took, times);
}

int main(int argc, char **argv)
{
	errno = EINVAL;
	if (argc < 3)
		die("usage: share LOCK FILE [TIMES]");
	for (unsigned i = 0; i < sizeof(locks) / sizeof(*locks); i++) {
		if (strcmp(locks[i].name, argv[1]))
			continue;
		locks[i].prepare(argv[2]);
		if (argc == 3)
			have_it(&locks[i]);
		ask_for_it(&locks[i], atoi(argv[3]));
		return 0;
	}
	die("no lock %s", argv[1]);
}
