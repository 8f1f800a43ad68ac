/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cost WHAT ROUNDS CPUS: what scheduling costs on a machine that has nothing else to do, in ns a round, the median
 * of BATCHES equal parts. WHAT is
 *   switch     two threads on CPU 0 yield to each other; a round is a switch
 *   pipe       two threads on CPU 0 send a byte to and fro; a round is one way: a wake-up, and a switch
 *   wake       the same on CPUs 0 and 1: a wake-up of an idle CPU
 *   messages   on all CPUs, groups of senders and receivers, each sender to each receiver; a round is a message
 *              (as hackbench does)
 *   requests   on all CPUs, dispatchers each wake their workers, which compute, and wait for all; a round is a
 *              worker's (as schbench does)
 * Its threads share an address space: what changing one costs is the machine's affair.
 */
#include <pthread.h>
#include <semaphore.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "load.h"

enum { BATCHES = 9, GROUPS = 4, MEMBERS = 5, MESSAGE = 100, THINK = 1000 };

static int there[2], back[2];
static long rounds;

static void need(bool ok, const char *what)
{
	if (!ok)
		die("%s", what);
}

static void start(pthread_t *thread, void *(*body)(void *), void *arg)
{
	need(!pthread_create(thread, NULL, body, arg), "thread");
}

static void pin_to(int cpu)
{
	pin(cpu, cpu);
}

static void *echo(void *cpu)
{
	char byte;

	pin_to((long)cpu);
	while (read(there[0], &byte, 1) == 1)
		need(write(back[1], &byte, 1) == 1, "answer");
	return NULL;
}

static double ping_pong(long other_cpu)
{
	static bool started;
	pthread_t thread;
	char byte = 0;
	uint64_t begin;

	if (!started) {
		need(!pipe(there) && !pipe(back), "pipe");
		start(&thread, echo, (void *)other_cpu);
		started = true;
	}
	begin = now_ns();
	for (long i = 0; i < rounds; i++)
		need(write(there[1], &byte, 1) == 1 && read(back[0], &byte, 1) == 1, "ping");
	return (now_ns() - begin) / 2.0 / rounds;
}

static double pipe_on_one(void)
{
	return ping_pong(0);
}

static double wake_the_other(void)
{
	return ping_pong(1);
}

static void *yields(void *unused)
{
	(void)unused;
	pin_to(0);
	for (long i = 0; i < rounds; i++)
		sched_yield();
	return NULL;
}

static long switches(void)
{
	struct rusage usage;

	need(!getrusage(RUSAGE_SELF, &usage), "getrusage");
	return usage.ru_nvcsw + usage.ru_nivcsw;
}

/* A scheduler may let the one that yields go on: what counts is the switches that there were. */
static double yield_to_each_other(void)
{
	long before = switches();
	pthread_t thread;
	uint64_t begin = now_ns();

	start(&thread, yields, NULL);
	yields(NULL);
	pthread_join(thread, NULL);
	return (double)(now_ns() - begin) / (switches() - before);
}

struct group {
	int in[MEMBERS], out[MEMBERS]; /* of each receiver's socket */
};

static void *sends(void *arg)
{
	struct group *g = arg;
	char message[MESSAGE] = "";

	for (long i = 0; i < rounds; i++)
		for (int r = 0; r < MEMBERS; r++)
			need(write(g->in[r], message, MESSAGE) == MESSAGE, "send");
	return NULL;
}

static void *receives(void *arg)
{
	int fd = (long)arg;
	char message[MESSAGE];

	for (long left = rounds * MEMBERS * MESSAGE; left > 0;) {
		ssize_t got = read(fd, message, MESSAGE);

		need(got > 0, "receive");
		left -= got;
	}
	return NULL;
}

static double messages(void)
{
	pthread_t threads[GROUPS][2 * MEMBERS];
	struct group groups[GROUPS];
	uint64_t begin = now_ns();

	for (int g = 0; g < GROUPS; g++)
		for (int r = 0; r < MEMBERS; r++) {
			int pair[2];

			need(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair), "socketpair");
			groups[g].in[r] = pair[0];
			groups[g].out[r] = pair[1];
			start(&threads[g][r], receives, (void *)(long)pair[1]);
		}
	for (int g = 0; g < GROUPS; g++)
		for (int s = 0; s < MEMBERS; s++)
			start(&threads[g][MEMBERS + s], sends, &groups[g]);
	for (int g = 0; g < GROUPS; g++)
		for (int t = 0; t < 2 * MEMBERS; t++)
			pthread_join(threads[g][t], NULL);
	for (int g = 0; g < GROUPS; g++)
		for (int r = 0; r < MEMBERS; r++) {
			close(groups[g].in[r]);
			close(groups[g].out[r]);
		}
	return (double)(now_ns() - begin) / rounds / (GROUPS * MEMBERS * MEMBERS);
}

struct team {
	sem_t go[MEMBERS], done;
};

struct worker {
	struct team *team;
	int number;
};

static void *works(void *arg)
{
	struct worker *w = arg;

	for (long i = 0; i < rounds; i++) {
		need(!sem_wait(&w->team->go[w->number]), "wait for work");
		compute(THINK);
		need(!sem_post(&w->team->done), "say that it is done");
	}
	return NULL;
}

static void *dispatches(void *arg)
{
	struct team *team = arg;
	struct worker workers[MEMBERS];
	pthread_t threads[MEMBERS];

	need(!sem_init(&team->done, 0, 0), "semaphore");
	for (int w = 0; w < MEMBERS; w++) {
		workers[w] = (struct worker){ team, w };
		need(!sem_init(&team->go[w], 0, 0), "semaphore");
		start(&threads[w], works, &workers[w]);
	}
	for (long i = 0; i < rounds; i++) {
		for (int w = 0; w < MEMBERS; w++)
			need(!sem_post(&team->go[w]), "hand out work");
		for (int w = 0; w < MEMBERS; w++)
			need(!sem_wait(&team->done), "wait for workers");
	}
	for (int w = 0; w < MEMBERS; w++)
		pthread_join(threads[w], NULL);
	return NULL;
}

static double requests(void)
{
	pthread_t threads[GROUPS];
	struct team teams[GROUPS];
	uint64_t begin = now_ns();

	for (int t = 0; t < GROUPS; t++)
		start(&threads[t], dispatches, &teams[t]);
	for (int t = 0; t < GROUPS; t++)
		pthread_join(threads[t], NULL);
	return (double)(now_ns() - begin) / rounds / (GROUPS * MEMBERS);
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		double (*batch)(void);
		bool everywhere;
	} kinds[] = {
		{ "switch", yield_to_each_other, false },
		{ "pipe", pipe_on_one, false },
		{ "wake", wake_the_other, false },
		{ "messages", messages, true },
		{ "requests", requests, true },
	};
	double took[BATCHES];

	if (argc != 4 || (rounds = atol(argv[2])) < 1)
		die("usage: cost WHAT ROUNDS CPUS");
	join_cgroup("critical");
	for (size_t k = 0; k < sizeof(kinds) / sizeof(*kinds); k++) {
		if (strcmp(kinds[k].name, argv[1]))
			continue;
		pin(0, kinds[k].everywhere ? atoi(argv[3]) - 1 : 0);
		kinds[k].batch(); /* warm up */
		for (int i = 0; i < BATCHES; i++)
			took[i] = kinds[k].batch();
		qsort(took, BATCHES, sizeof(*took), ascending);
		printf("ns=%.1f\n", took[BATCHES / 2]);
		return 0;
	}
	errno = EINVAL;
	die("no such kind: %s", argv[1]);
}
