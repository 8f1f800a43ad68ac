// SPDX-License-Identifier: GPL-2.0
/*
 * RT throttling: real-time tasks are lowered where others wait.
 *
 * Problem: a SCHED_FIFO task that polls keeps all tasks of ours from its CPU, and on 6.12 to 6.19 nothing in the kernel
 * ends that: its watchdog ejects the scheduler after 30 s (rt_hogs.bpf.h).
 *
 * Method: what the kernel's sched_rt_runtime_us did. A thread of SCHED_DEADLINE, which no real-time task can starve,
 * asks the scheduler which CPUs are taken. Where one has been for PATIENCE, and others wait, they have a turn of TURN:
 * each real-time task that is found there meanwhile is lowered to SCHED_IDLE, and has its policy back after the turn.
 * A CPU that is taken for ever so leaves 50 of 1,050 ms to others.
 *
 *   0 ms      the hog takes the CPU, a task of ours is bound to it
 *   400 ms    map "hogs" names the hog
 *   1000 ms   the hog is lowered: first it is written into map "rt_throttled", then its policy is set
 *   1050 ms   its policy is set back; the entry is deleted 2 s later, for the sake of children that are being forked
 *
 * A loader that is killed between leaves the entry in the pinned map, and the next one gives the policy back. Who has set
 * the task's policy meanwhile wins: only a task that is still SCHED_IDLE gets it back.
 *
 * Limits: threads of the kernel are left alone, and told of. So are tasks whose policy somebody, who may, sets back as often
 * as it is lowered: that others have a turn cannot be had then. Between look and call some microseconds pass, in which a
 * change of policy is lost; and so is the policy of a thread, not its process's first, that calls exec while it is lowered:
 * it goes on under another id. Without a pin, or without a next loader, a killed loader leaves a task lowered.
 */
#define _GNU_SOURCE /* SCHED_IDLE */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "loader.h"

#define MS 1000000ull
#define LOOK_EVERY (400 * MS) /* each look holds up whoever runs there */
#define LOOK_IN_TURN (10 * MS)
#define TELL_AFTER (300 * MS)
#define FORGET_AFTER (3000 * MS)
/* A kernel that has a server for sched_ext gives them a turn after 950 ms: leave it the first word. */
#define PATIENCE (1000 * MS)
#define TURN (50 * MS)
#define OFTEN 3 /* more than a program has reasons to set its policy in a turn */
#define LINGER (2000 * MS) /* longer than a fork takes */

static struct {
	struct rt_throttle_maps use;
	const struct temper_look *looks;
	struct temper_hog *hogs;
	unsigned nr_cpus;
	bool sees_all; /* ids mean the same to the kernel's programs and to us; not so in a PID namespace of our own */
	unsigned long long turn_ends[TEMPER_MAX_CPUS]; /* 0: no turn is under way */
	unsigned set_back[TEMPER_MAX_CPUS]; /* how often one that was lowered was real-time again in the turn, or the last one */
	int stop; /* eventfd; readable: the thread is to end */
	pthread_t thread;
	bool runs;
} rt_throttle = { .stop = -1 };

static unsigned long long ticks_of(unsigned long long ns)
{
	return ns / (1000000000ull / sysconf(_SC_CLK_TCK));
}

static bool is_real_time(int with_flag)
{
	int policy = with_flag & ~SCHED_RESET_ON_FORK;

	return with_flag >= 0 && (policy == SCHED_FIFO || policy == SCHED_RR);
}

/* The policy of one that is lowered: the flag is its own matter. */
static int lowered(unsigned policy)
{
	return SCHED_IDLE | (policy & SCHED_RESET_ON_FORK);
}

/* Is it the thread that was lowered, and has nobody set its policy since? */
static bool is_still_lowered(int tid, const struct temper_rt_throttled *t)
{
	struct thread_stat s;

	if (!read_thread_stat(tid, &s) || sched_getscheduler(tid) != lowered(t->policy))
		return false;
	if (t->inherited)
		return s.start_ticks >= ticks_of(t->start) && s.start_ticks <= ticks_of(t->start + 1000 * MS);
	return s.start_ticks == ticks_of(t->start);
}

/* True: it has its policy back now; else it is gone, somebody has set it meanwhile, or it cannot be set. */
static bool give_back(int tid, const struct temper_rt_throttled *t)
{
	const struct sched_param param = { .sched_priority = t->priority };

	if (!is_still_lowered(tid, t))
		return false;
	if (!sched_setscheduler(tid, t->policy, &param))
		return true;
	if (errno != ESRCH)
		note("cannot give process %d its policy back: %s", tid, strerror(errno));
	return false;
}

/*
 * A child that was forked while its parent was lowered may not have been entered yet, or may not be in /proc yet: entries
 * of the one and of the other stay for LINGER.
 */
static bool may_be_forking(int tid, const struct temper_rt_throttled *t, unsigned long long now)
{
	struct thread_stat s;
	struct timespec boot;

	if (t->given_back)
		return now - t->given_back < LINGER;
	clock_gettime(CLOCK_BOOTTIME, &boot);
	return t->inherited && !read_thread_stat(tid, &s) && boot.tv_sec * 1000 * MS + boot.tv_nsec - t->start < LINGER;
}

/* All that were lowered for the sake of a CPU on which no turn is under way. */
static void give_back_all(int rt_throttled, const unsigned long long *turn_ends)
{
	unsigned long long now = monotonic_ns();
	unsigned tid, *before = NULL;
	struct temper_rt_throttled t;

	/* After a key that is gone comes the first. */
	for (; !bpf_map_get_next_key(rt_throttled, before, &tid); before = &tid) {
		if (bpf_map_lookup_elem(rt_throttled, &tid, &t) || (turn_ends && turn_ends[t.cpu % TEMPER_MAX_CPUS]))
			continue;
		if (!t.given_back && give_back(tid, &t)) {
			t.given_back = now;
			bpf_map_update_elem(rt_throttled, &tid, &t, BPF_EXIST);
		} else if (!may_be_forking(tid, &t, now)) {
			bpf_map_delete_elem(rt_throttled, &tid);
		}
	}
}

/* 0: it is lowered, or is no real-time task there any more; else an errno: why it cannot be. */
static int lower(const struct temper_look *look, unsigned cpu, bool *did)
{
	struct temper_rt_throttled t = { .start = look->start, .cpu = cpu }, before;
	const struct sched_param none = {};
	struct sched_param param;
	unsigned tid = look->tid;
	struct thread_stat s;

	*did = false;
	if (look->kernel)
		return ENOTSUP;
	if (!rt_throttle.sees_all)
		return ESRCH;
	t.policy = sched_getscheduler(tid);
	if (!read_thread_stat(tid, &s) || s.start_ticks != ticks_of(look->start) || (!look->donor && s.cpu != (int)cpu) || !is_real_time(t.policy) || sched_getparam(tid, &param))
		return 0;
	t.priority = param.sched_priority;
	if (!bpf_map_lookup_elem(rt_throttle.use.rt_throttled, &tid, &before) && before.start == t.start && !before.given_back)
		rt_throttle.set_back[cpu]++;
	if (bpf_map_update_elem(rt_throttle.use.rt_throttled, &tid, &t, BPF_ANY))
		return errno;
	if (sched_setscheduler(tid, lowered(t.policy), &none)) {
		int error = errno;

		bpf_map_delete_elem(rt_throttle.use.rt_throttled, &tid);
		return error;
	}
	*did = true;
	return 0;
}

static const char *policy_name(unsigned policy)
{
	return policy == SCHED_RR ? "SCHED_RR" : "SCHED_FIFO";
}

static const char *reason(int error)
{
	if (error == ENOTSUP)
		return "it is a thread of the kernel";
	if (error == ESRCH)
		return "scx_temper does not see the node's processes (hostPID)";
	if (error == EAGAIN)
		return "somebody sets its policy back as often as it is lowered";
	return strerror(error);
}

/* Name it to `status`, as long as it is there. */
static void tell(unsigned cpu, unsigned long long now)
{
	const struct temper_look *look = &rt_throttle.looks[cpu];
	struct temper_hog *h = &rt_throttle.hogs[cpu];
	struct sched_param param = {};

	if (look->taken_ns < TELL_AFTER)
		return;
	if (h->tid != look->tid || now - h->seen_ns > FORGET_AFTER) {
		sched_getparam(look->tid, &param);
		h->since_ns = now - look->taken_ns;
		h->tid = look->tid;
		h->process = look->process;
		h->policy = sched_getscheduler(look->tid) & ~SCHED_RESET_ON_FORK;
		h->priority = param.sched_priority;
		h->error = 0;
		h->starves = false;
		memcpy(h->comm, look->comm, sizeof(h->comm));
	}
	if (look->waiting)
		h->starves = true;
	__atomic_store_n(&h->seen_ns, now, __ATOMIC_RELEASE);
}

/* Once for each hog. */
static void say(unsigned cpu, int error)
{
	static int said_of[TEMPER_MAX_CPUS], said[TEMPER_MAX_CPUS];
	struct temper_hog *h = &rt_throttle.hogs[cpu];

	h->error = error;
	if (said_of[cpu] == h->tid && said[cpu] == error)
		return;
	said_of[cpu] = h->tid;
	said[cpu] = error;
	note(error ? "thread %d (%s), %s of priority %u, keeps others from CPU %u, and cannot be RT-throttled: %s" :
		     "thread %d (%s), %s of priority %u, keeps others from CPU %u: it is RT-throttled",
	     h->tid, h->comm, policy_name(h->policy), h->priority, cpu, reason(error));
}

/* One CPU; returns when to look at it again. */
static unsigned long long see_to(unsigned cpu, unsigned long long now)
{
	const struct temper_look *look = &rt_throttle.looks[cpu];
	unsigned long long *turn_ends = &rt_throttle.turn_ends[cpu];
	int error;
	bool did;

	if (!look->tid)
		return now + (*turn_ends ? LOOK_IN_TURN : LOOK_EVERY);
	tell(cpu, now);
	if (*turn_ends) {
		lower(look, cpu, &did);
		return did ? now : now + LOOK_IN_TURN;
	}
	if (!look->waiting)
		return now + LOOK_EVERY;
	if (look->taken_ns < PATIENCE)
		return now + PATIENCE - look->taken_ns;
	error = lower(look, cpu, &did);
	if (did && rt_throttle.set_back[cpu] > OFTEN)
		error = EAGAIN;
	if (did || error)
		say(cpu, error);
	if (!did)
		return now + LOOK_EVERY;
	rt_throttle.set_back[cpu] = 0;
	rt_throttle.hogs[cpu].turns++;
	*turn_ends = now + TURN;
	return now; /* another may have the CPU now */
}

/* All CPUs; returns when to look again. */
static unsigned long long look_once(void)
{
	LIBBPF_OPTS(bpf_test_run_opts, run);
	unsigned long long now = monotonic_ns(), next = now + LOOK_EVERY;

	for (unsigned cpu = 0; cpu < rt_throttle.nr_cpus; cpu++)
		if (now >= rt_throttle.turn_ends[cpu])
			rt_throttle.turn_ends[cpu] = 0;
	give_back_all(rt_throttle.use.rt_throttled, rt_throttle.turn_ends);
	if (bpf_prog_test_run_opts(rt_throttle.use.program, &run) || !run.retval)
		return next; /* the scheduler has left */
	rt_throttle.sees_all = run.retval == (unsigned)getpid();
	for (unsigned cpu = 0; cpu < rt_throttle.nr_cpus; cpu++) {
		unsigned long long again = see_to(cpu, now);

		if (rt_throttle.turn_ends[cpu] && rt_throttle.turn_ends[cpu] < again)
			again = rt_throttle.turn_ends[cpu];
		next = again < next ? again : next;
	}
	return next;
}

/* False: it is to end. */
static bool sleep_until(unsigned long long when)
{
	unsigned long long now = monotonic_ns(), least = MS / 5;
	unsigned long long ns = when > now + least ? when - now : least;
	const struct timespec pause = { .tv_sec = ns / (1000 * MS), .tv_nsec = ns % (1000 * MS) };
	struct pollfd stop = { .fd = rt_throttle.stop, .events = POLLIN };

	return ppoll(&stop, 1, &pause, NULL) <= 0;
}

/* A class that no real-time task can starve. Where CPUs are kept from us the kernel refuses it: the highest priority stays. */
static void leave_real_time(void)
{
	/* Of linux/sched/types.h, which does not go with every C library's sched.h. */
	struct {
		unsigned size, policy;
		unsigned long long flags;
		int nice;
		unsigned priority;
		unsigned long long runtime, deadline, period;
	} attributes = { .size = 48, .policy = 6 /* SCHED_DEADLINE */, .runtime = 10 * MS, .deadline = 100 * MS, .period = 100 * MS };

	syscall(SYS_sched_setattr, 0, &attributes, 0);
}

static void *keep_rt_throttling(void *unused)
{
	leave_real_time();
	while (sleep_until(look_once()))
		;
	give_back_all(rt_throttle.use.rt_throttled, NULL);
	return unused;
}

static void *map_whole(int fd, size_t size, int protection)
{
	void *memory = fd < 0 ? MAP_FAILED : mmap(NULL, size, protection, MAP_SHARED, fd, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

enum temper_status start_rt_throttle(struct rt_throttle_maps use)
{
	const struct sched_param highest = { .sched_priority = sched_get_priority_max(SCHED_FIFO) };
	enum temper_status status;
	pthread_attr_t attributes;
	int error;

	status = read_cpu_ids(&rt_throttle.nr_cpus);
	if (status)
		return status;
	rt_throttle.use = use;
	rt_throttle.looks = map_whole(use.looks, sizeof(*rt_throttle.looks) * TEMPER_MAX_CPUS, PROT_READ);
	rt_throttle.hogs = map_whole(use.hogs, sizeof(*rt_throttle.hogs) * TEMPER_MAX_CPUS, PROT_READ | PROT_WRITE);
	rt_throttle.stop = eventfd(0, EFD_CLOEXEC);
	if (use.program < 0 || use.rt_throttled < 0 || !rt_throttle.looks || !rt_throttle.hogs || rt_throttle.stop < 0)
		return fail(TEMPER_FAILED, "cannot reach what tells of CPUs that real-time tasks have taken: %s", strerror(errno));
	memset(rt_throttle.turn_ends, 0, sizeof(rt_throttle.turn_ends));
	pthread_attr_init(&attributes);
	pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(&attributes, SCHED_FIFO);
	pthread_attr_setschedparam(&attributes, &highest);
	error = pthread_create(&rt_throttle.thread, &attributes, keep_rt_throttling, NULL);
	pthread_attr_destroy(&attributes);
	if (error)
		return fail(TEMPER_FAILED, "cannot start a real-time thread, for RT throttling: %s; CAP_SYS_NICE is needed",
			    strerror(error));
	rt_throttle.runs = true;
	return TEMPER_OK;
}

void stop_rt_throttle(void)
{
	if (!rt_throttle.runs)
		return;
	rt_throttle.runs = false;
	eventfd_write(rt_throttle.stop, 1);
	pthread_join(rt_throttle.thread, NULL);
	close(rt_throttle.stop);
	munmap((void *)rt_throttle.looks, sizeof(*rt_throttle.looks) * TEMPER_MAX_CPUS);
	munmap(rt_throttle.hogs, sizeof(*rt_throttle.hogs) * TEMPER_MAX_CPUS);
}

void give_back_what_is_left(void)
{
	int fd = options.pin_dir ? open_pinned("rt_throttled") : -1;
	struct bpf_map_info info = {};
	unsigned size = sizeof(info);

	if (fd < 0)
		return;
	/* Another version's may be laid out differently. */
	if (!bpf_map_get_info_by_fd(fd, &info, &size) && info.value_size == sizeof(struct temper_rt_throttled))
		give_back_all(fd, NULL);
	close(fd);
}
