/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the load generators share: an open-loop arrival process, the window over
 * which it is measured, and the counters of the work beside it. A latency counts
 * from the intended send time, so a late generator cannot hide a slow service.
 */
#ifndef TEMPER_LOAD_H
#define TEMPER_LOAD_H

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define NSEC 1000000000ull
#define MAX_SPINNERS 256

/* One counter a spinner, each on a cache line of its own. */
struct work_slot {
	volatile uint64_t units;
	char pad[56];
};

static inline void die(const char *what, ...)
{
	va_list args;

	va_start(args, what);
	vfprintf(stderr, what, args);
	va_end(args);
	fprintf(stderr, ": %s\n", strerror(errno));
	exit(1);
}

static inline uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * NSEC + t.tv_nsec;
}

static inline void sleep_until(uint64_t at)
{
	struct timespec t = { at / NSEC, at % NSEC };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
		;
}

static inline void pin(int first, int last)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	for (int cpu = first; cpu <= last; cpu++)
		CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die("pin to CPUs %d-%d", first, last);
}

/* Opens a file below the folder that an environment variable names. */
static inline int open_below(const char *variable, const char *name, int flags)
{
	const char *folder = getenv(variable);
	char path[512];
	int fd;

	if (!folder) {
		errno = EINVAL;
		die("%s is not set", variable);
	}
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, flags, 0600);
	if (fd < 0)
		die("%s", path);
	return fd;
}

#define CGROUPS "LADDER_CGROUPS" /* holds the cgroups critical and background */
#define DIR "LADDER_DIR"

static inline void join_cgroup(const char *name)
{
	char procs[64];
	int fd;

	snprintf(procs, sizeof(procs), "%s/cgroup.procs", name);
	fd = open_below(CGROUPS, procs, O_WRONLY);
	if (write(fd, "0", 1) != 1)
		die("join cgroup %s", name);
	close(fd);
}

#define POLICY "LADDER_POLICY" /* of the threads that an arm schedules in another way; not set: the default */

static inline void adopt_policy(void)
{
	const char *name = getenv(POLICY);
	struct sched_param fifo = { .sched_priority = 1 }, idle = { 0 };

	if (!name)
		return;
	errno = EINVAL;
	if (!strcmp(name, "fifo") && !sched_setscheduler(0, SCHED_FIFO, &fifo))
		return;
	if (!strcmp(name, "idle") && !sched_setscheduler(0, SCHED_IDLE, &idle))
		return;
	die("scheduling policy %s", name);
}

static inline struct work_slot *map_work(void)
{
	size_t size = MAX_SPINNERS * sizeof(struct work_slot);
	int fd = open_below(DIR, "work", O_RDWR | O_CREAT);
	struct work_slot *slots;

	if (ftruncate(fd, size))
		die("size of the work file");
	slots = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (slots == MAP_FAILED)
		die("mmap of the work file");
	close(fd);
	return slots;
}

/* A fixed amount of computing, whatever the clock says: what a scheduler costs cannot hide in it. */
static inline void compute(uint64_t iterations)
{
	volatile uint64_t sink;
	uint64_t x = 88172645463325252ull;

	for (uint64_t i = 0; i < iterations; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		__asm__ volatile("" : "+r"(x));
	}
	sink = x;
	(void)sink;
}

/* Arrivals: Poisson at `rate` a second; bursty ones fall in the first 40 % of each 100 ms. */
struct arrivals {
	double rate;
	bool bursty;
	uint64_t start;
	double active_ns; /* time since start, without the silent parts */
};

static inline uint64_t next_arrival(struct arrivals *a)
{
	const double period = 100e6, on = 40e6;
	double rate = a->bursty ? a->rate * period / on : a->rate;

	a->active_ns += -log(1 - drand48()) / rate * NSEC;
	if (!a->bursty)
		return a->start + (uint64_t)a->active_ns;
	double whole = floor(a->active_ns / on);

	return a->start + (uint64_t)(whole * period + (a->active_ns - whole * on));
}

/* What ran beside the service, read at both ends of a window. */
struct sample {
	uint64_t at_ns, work, background_usec, service_usec;
};

static inline uint64_t usage_usec(const char *cgroup)
{
	char stat[64], text[64] = "";
	int fd;

	snprintf(stat, sizeof(stat), "%s/cpu.stat", cgroup);
	fd = open_below(CGROUPS, stat, O_RDONLY);
	if (read(fd, text, sizeof(text) - 1) <= 0)
		die("cpu.stat of %s", cgroup);
	close(fd);
	return strtoull(text + strlen("usage_usec "), NULL, 10);
}

static inline struct sample take_sample(struct work_slot *slots)
{
	struct sample s = { .at_ns = now_ns() };

	for (int i = 0; i < MAX_SPINNERS; i++)
		s.work += slots[i].units;
	s.background_usec = usage_usec("background");
	s.service_usec = usage_usec("critical");
	return s;
}

/* A window: requests sent from `begin` to `end` are measured; those before warm things up. */
struct window {
	uint64_t begin, end, *latency; /* by order of sending; 0: not answered */
	uint64_t sent, capacity;
	struct sample first, last;
};

static inline void open_window(struct window *w, uint64_t start, double warm_up, double seconds, double rate)
{
	w->begin = start + (uint64_t)(warm_up * NSEC);
	w->end = w->begin + (uint64_t)(seconds * NSEC);
	w->capacity = (uint64_t)(rate * seconds * 2) + 1000;
	w->latency = calloc(w->capacity, sizeof(*w->latency));
	if (!w->latency)
		die("memory for %lu latencies", w->capacity);
}

/* Every latency in ns, as 64-bit words, at the end of `file`. */
static inline void append_latencies(struct window *w, const char *file)
{
	int fd = open(file, O_WRONLY | O_CREAT | O_APPEND, 0600);
	size_t size = w->sent * sizeof(*w->latency);

	if (fd < 0 || write(fd, w->latency, size) != (ssize_t)size)
		die("%s", file);
	close(fd);
}

/* One line of figures on stdout. */
static inline void print_figures(struct window *w, uint64_t sent)
{
	printf("elapsed_ns=%lu sent=%lu work=%lu background_usec=%lu service_usec=%lu\n",
	       w->last.at_ns - w->first.at_ns, sent, w->last.work - w->first.work,
	       w->last.background_usec - w->first.background_usec,
	       w->last.service_usec - w->first.service_usec);
}

static inline void report(struct window *w, const char *file)
{
	if (unlink(file) && errno != ENOENT)
		die("%s", file);
	append_latencies(w, file);
	print_figures(w, w->sent);
}

#endif
