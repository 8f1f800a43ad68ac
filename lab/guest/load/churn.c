/* SPDX-License-Identifier: Apache-2.0 */
/*
 * churn KIND SLOT: a worker that makes trouble for a scheduler, without an end. SLOT counts its
 * rounds in the work file, so that whoever watches sees whether it gets on.
 * churn trace PID: stop a process as a debugger does, and let it go.
 * churn hog MS: compute for so long in real time, and end.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "trouble.h"

static volatile uint64_t *rounds; /* what this worker has got done */

static void got_on(void)
{
	__atomic_add_fetch(rounds, 1, __ATOMIC_RELAXED);
}

static void spin(void)
{
	compute(10 * SHORT);
}

static void nap(void)
{
	struct timespec t = { 0, 100000 + lrand48() % 3000000 };

	compute(lrand48() % (20 * SHORT));
	nanosleep(&t, NULL);
}

static void fork_one(void)
{
	pid_t child = fork();

	check(child >= 0, "fork");
	if (child == 0) {
		compute(SHORT);
		_exit(0);
	}
	check(waitpid(child, NULL, 0) == child, "wait");
}

static void exec_one(void)
{
	pid_t child = vfork();

	check(child >= 0, "vfork");
	if (child == 0) {
		execl("/proc/self/exe", "churn", "nothing", "0", (char *)NULL);
		_exit(1);
	}
	int status;

	check(waitpid(child, &status, 0) == child && status == 0, "exec");
}

static void *short_life(void *unused)
{
	compute(SHORT);
	return unused;
}

static void thread_one(void)
{
	pthread_t thread;

	check(!pthread_create(&thread, NULL, short_life, NULL) && !pthread_join(thread, NULL), "thread");
}

/* All of this kind rename in one folder, and so take turns at one lock of the kernel. */
static void files(void)
{
	char old[32], new[64];

	snprintf(old, sizeof(old), "/tmp/churn-%d", getpid());
	snprintf(new, sizeof(new), "%s-renamed", old);
	int fd = open(old, O_CREAT | O_WRONLY, 0600);

	check(fd >= 0 && write(fd, old, sizeof(old)) == sizeof(old) && !close(fd), old);
	check(!rename(old, new) && !unlink(new), new);
}

static void hold_and_release(pthread_mutex_t *lock)
{
	check(!pthread_mutex_lock(lock), "lock");
	compute(SHORT);
	check(!pthread_mutex_unlock(lock), "unlock");
}

static void *contend(void *lock)
{
	for (;; got_on())
		hold_and_release(lock);
	return NULL;
}

/* Whichever thread has the lock gets on: who is woken for it may find it taken again, for as long as it likes. */
static void mutex(void)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static pthread_t other;

	if (!other)
		check(!pthread_create(&other, NULL, contend, &lock), "thread");
	hold_and_release(&lock);
}

static void nothing(void)
{
	exit(0);
}

static void stop_and_let_go(pid_t pid)
{
	check(!ptrace(PTRACE_SEIZE, pid, NULL, NULL), "seize");
	check(!ptrace(PTRACE_INTERRUPT, pid, NULL, NULL), "interrupt");
	check(waitpid(pid, NULL, __WALL) == pid, "wait");
	check(!ptrace(PTRACE_DETACH, pid, NULL, NULL), "detach");
}

static void hog(uint64_t ms)
{
	struct sched_param priority = { .sched_priority = 1 };
	uint64_t end = now_ns() + ms * 1000000;

	check(!sched_setscheduler(0, SCHED_FIFO, &priority), "SCHED_FIFO");
	while (now_ns() < end)
		;
}

static const struct {
	const char *name;
	void (*round)(void);
} kinds[] = {
	{ "spin", spin }, { "nap", nap }, { "yield", yield }, { "ping", ping }, { "fork", fork_one }, { "exec", exec_one },
	{ "thread", thread_one }, { "files", files }, { "mutex", mutex }, { "nothing", nothing },
};

int main(int argc, char **argv)
{
	if (argc != 3)
		die("usage: churn KIND SLOT");
	if (!strcmp(argv[1], "trace")) {
		stop_and_let_go(atoi(argv[2]));
		return 0;
	}
	if (!strcmp(argv[1], "hog")) {
		hog(atoi(argv[2]));
		return 0;
	}
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (strcmp(argv[1], kinds[i].name))
			continue;
		if (kinds[i].round == nothing)
			nothing();
		rounds = &map_work()[atoi(argv[2]) % MAX_SPINNERS].units;
		srand48(atoi(argv[2]));
		for (;; got_on())
			kinds[i].round();
	}
	errno = EINVAL;
	die("no kind %s", argv[1]);
}
