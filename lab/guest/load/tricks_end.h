/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tricks with tasks that begin, stop or end: somebody waits for them, so that they come first.
 */
#ifndef TEMPER_TRICKS_END_H
#define TEMPER_TRICKS_END_H

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "trick.h"

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

/* A child that computes for as long as its parent is thought to wait for it. */
static void vfork_one(void)
{
	if (vfork() == 0)
		for (;;)
			compute(SHORT);
}

/* The same, of whose parent it says that it is its own: that is somebody else, who does not wait. */
static void vfork_sibling(void)
{
	pid_t child = syscall(SYS_clone, CLONE_VFORK | CLONE_PARENT | SIGCHLD, NULL, NULL, NULL, NULL);

	check(child >= 0, "clone");
	if (child == 0)
		for (;;)
			compute(SHORT);
}

/* Timers that ask the process to stop, and to go on. */
static void start_timer(int signal, long first, long period)
{
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = signal };
	struct itimerspec times = { .it_interval = { 0, period }, .it_value = { 0, first } };
	timer_t timer;

	check(!timer_create(CLOCK_MONOTONIC, &event, &timer) && !timer_settime(timer, 0, &times, NULL), "timer");
}

static void stop(void)
{
	static int rounds;

	/* Not in the first one: it would never get that far. */
	if (rounds++ == 1) {
		long first = 1000000 + lrand48() % 1000000;

		start_timer(SIGSTOP, first, 2000000);
		start_timer(SIGCONT, first + 1000000, 2000000);
	}
	compute(10 * SHORT);
}

/* Signals that stop nobody, each of which the kernel has to deliver. */
static void ignore(int signal)
{
	(void)signal;
}

static void prepare_signals(void)
{
	signal(SIGALRM, ignore);
	start_timer(SIGALRM, 100000, 100000);
}

/* A cgroup of its own that is frozen and thawed: each time the kernel asks all in it to stop. */
static void prepare_freezer(void)
{
	pid_t child = fork();

	check(child >= 0, "fork");
	if (child)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	write_to("b", "cgroup.procs", "0");
	for (;;) {
		struct timespec t = { 0, 500000 };

		write_to("a", "cgroup.freeze", "1");
		nanosleep(&t, NULL);
		write_to("a", "cgroup.freeze", "0");
		nanosleep(&t, NULL);
	}
}

/* A child with a lot of memory goes, over and over: whoever is on the way out comes first. */
static void exit_large(void)
{
	enum { SIZE = 4 << 20 };
	pid_t child = fork();

	check(child >= 0, "fork");
	if (child == 0) {
		mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
		_exit(0);
	}
	check(waitpid(child, NULL, 0) == child, "wait");
}

/* Stops a child as a debugger does. */
static void trace(void)
{
	static pid_t child;

	if (!child) {
		child = fork();
		check(child >= 0, "fork");
		if (child == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			for (;;)
				compute(SHORT);
		}
		check(!syscall(SYS_ptrace, 0x4206 /* PTRACE_SEIZE */, child, NULL, NULL), "seize");
	}
	check(!syscall(SYS_ptrace, 0x4207 /* PTRACE_INTERRUPT */, child, NULL, NULL), "interrupt");
	check(waitpid(child, NULL, __WALL) == child, "wait");
	check(!syscall(SYS_ptrace, 7 /* PTRACE_CONT */, child, NULL, NULL), "continue");
	compute(SHORT);
}

enum { PIECES = 64 };
static struct iovec pieces[PIECES];
static int long_file;

/* A child dies of a signal and leaves a core: the kernel looks at each page of what it has mapped, here for hours. */
static void dump_core(void)
{
	const struct rlimit any = { RLIM_INFINITY, RLIM_INFINITY };
	const struct timespec t = { 0, 10000000 };
	static pid_t child;

	if (child && waitpid(child, NULL, WNOHANG) == 0) {
		nanosleep(&t, NULL);
		return;
	}
	child = fork();
	check(child >= 0, "fork");
	if (child == 0) {
		char folder[] = "/tmp/coreXXXXXX";
		char *memory = mmap(NULL, 1ul << 46, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

		check(memory != MAP_FAILED && !setrlimit(RLIMIT_CORE, &any) && mkdtemp(folder) && !chdir(folder), "prepare a core");
		*memory = 1;
		abort();
	}
	for (int i = 0; i < 20; i++) /* until it does: beside others, later, it may not get that far */
		nanosleep(&t, NULL);
}

/* Reads long at a time, while timers stop and continue it: it stops once the call is over. */
static void prepare_long_reads(void)
{
	enum { PIECE = 2 << 20 };
	char *memory = mmap(NULL, PIECE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	long_file = memfd_create("hole", 0);
	check(long_file >= 0 && memory != MAP_FAILED && !ftruncate(long_file, (off_t)PIECES * PIECE), "a hole");
	for (int i = 0; i < PIECES; i++)
		pieces[i] = (struct iovec){ memory, PIECE };
	start_timer(SIGSTOP, NSEC / 100, NSEC / 10);
	start_timer(SIGCONT, NSEC / 11, NSEC / 10);
}

static void read_long(void)
{
	preadv(long_file, pieces, PIECES, 0);
}

/* Threads end with a list of locks that the kernel has to release, each in a page that has to be made first. */
enum { LOCKS = 2048, APART = 16 << 12 };
static char *locks;

static void prepare_locks(void)
{
	int fd = memfd_create("locks", 0);

	check(fd >= 0 && !ftruncate(fd, LOCKS * APART), "memory");
	locks = mmap(NULL, LOCKS * APART, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	check(locks != MAP_FAILED, "map");
	for (int i = 0; i < LOCKS; i++)
		*(char **)(locks + i * APART) = locks + (i + 1) % LOCKS * APART;
}

static void *leave_locks(void *unused)
{
	static __thread struct { char *first; long offset; void *pending; } list;

	list.first = locks;
	list.offset = 8;
	madvise(locks, LOCKS * APART, MADV_DONTNEED);
	check(!syscall(SYS_set_robust_list, &list, sizeof(list)), "robust list");
	return unused;
}

static void end_thread(void)
{
	pthread_t thread;

	check(!pthread_create(&thread, NULL, leave_locks, NULL) && !pthread_join(thread, NULL), "thread");
}

#endif
