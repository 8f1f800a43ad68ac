/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What generators share that ask a server on loopback as clients on other machines would:
 * one client a CPU, which never leaves that CPU and never lets it sleep.
 *
 * Clients are processes with connections of their own, and offer equal parts of the rate.
 * The first leads: it says when to start, reads what runs beside, and reports for all.
 *
 * Open loop; with RATE 0, closed loop, one request outstanding a connection, to find the
 * saturation: they print requests a second.
 */
#ifndef TEMPER_CLIENTS_H
#define TEMPER_CLIENTS_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "load.h"

#define DRAIN (NSEC / 2)
#define WARM_UP UINT64_MAX /* in place of a request's number: it is not measured */

static struct window window;
static uint64_t answered;
static bool closed_loop; /* an answer is followed by the next request */

/* What the clients tell each other: that one is connected, when to start, and what it has counted. */
static int ready[2], started[2], counted[2];

static void tell(int fd, uint64_t what)
{
	if (write(fd, &what, sizeof(what)) != sizeof(what))
		die("tell the other clients");
}

/* Fails when those who could tell are gone. */
static uint64_t learn(int fd)
{
	uint64_t what;

	errno = EPIPE;
	if (read(fd, &what, sizeof(what)) != sizeof(what))
		die("another client has ended");
	return what;
}

static int connect_to_server(uint16_t port)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int one = 1, fd = socket(AF_INET, SOCK_STREAM, 0);

	if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)))
		die("connect to port %d", port);
	if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)))
		die("TCP_NODELAY");
	return fd;
}

static void make_pipes(void)
{
	if (pipe(ready) || pipe(started) || pipe(counted))
		die("pipe");
}

/* Starts the others, and returns this process's number among them. */
static int become_clients(int clients)
{
	for (int i = 1; i < clients; i++) {
		pid_t pid = fork();

		if (pid < 0)
			die("fork");
		if (pid == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			close(ready[0]);
			close(started[1]);
			close(counted[0]);
			return i;
		}
	}
	close(ready[1]);
	close(started[0]);
	close(counted[1]);
	return 0;
}

/* All clients start at one time, once all are connected. */
static uint64_t start_together(int client, int clients)
{
	uint64_t start;

	if (client) {
		tell(ready[1], client);
		return learn(started[0]);
	}
	for (int i = 1; i < clients; i++)
		learn(ready[0]);
	start = now_ns() + NSEC / 50;
	for (int i = 1; i < clients; i++)
		tell(started[1], start);
	return start;
}

/* The sum of what the clients have counted, for the first one. */
static uint64_t sum(int client, int clients, uint64_t own)
{
	if (client) {
		tell(counted[1], own);
		return 0;
	}
	for (int i = 1; i < clients; i++)
		own += learn(counted[0]);
	return own;
}

/* What clients are told, by the first words of their command. */
struct order {
	uint16_t port;
	double rate, warm_up, seconds;
	long seed;
	bool bursty;
	int first_cpu, clients;
	const char *file; /* for latencies */
};

#define ORDER "PORT RATE WARM_UP_S SECONDS SEED BURSTY FIRST_CPU LAST_CPU LATENCY_FILE"
#define ORDER_WORDS 9

static struct order read_order(char **words)
{
	return (struct order){
		.port = atoi(words[0]), .rate = atof(words[1]), .warm_up = atof(words[2]), .seconds = atof(words[3]),
		.seed = atol(words[4]), .bursty = atoi(words[5]), .first_cpu = atoi(words[6]),
		.clients = atoi(words[7]) - atoi(words[6]) + 1, .file = words[8],
	};
}

/* What differs between protocols. */
struct protocol {
	void (*connect)(bool first);		      /* opens a client's connections */
	void (*fill)(void);			      /* sends a request on each of them */
	void (*due)(uint64_t intended, uint64_t id); /* a request is due */
	void (*poll)(void);			      /* takes the answers that are there */
};

/* Returns how many were answered in the measured part. */
static inline uint64_t saturate(const struct protocol *p, uint64_t start, double warm_up, double seconds)
{
	uint64_t begin = start + (uint64_t)(warm_up * NSEC), end = begin + (uint64_t)(seconds * NSEC), before = 0, at;

	closed_loop = true;
	p->fill();
	while ((at = now_ns()) < end) {
		if (at < begin)
			before = answered;
		p->poll();
	}
	return answered - before;
}

static inline void offer(const struct protocol *p, struct arrivals *a, struct work_slot *work)
{
	uint64_t at = next_arrival(a), now;
	bool begun = false;

	while ((now = now_ns()) < window.end + DRAIN) {
		if (!begun && now >= window.begin) {
			begun = true;
			window.first = take_sample(work);
		}
		if (!window.last.at_ns && now >= window.end)
			window.last = take_sample(work);
		for (; at <= now && at < window.end && window.sent < window.capacity; at = next_arrival(a))
			p->due(at, at >= window.begin ? window.sent++ : WARM_UP);
		p->poll();
	}
}

static inline int run_clients(const struct order *o, const struct protocol *p)
{
	struct arrivals a = { .rate = o->rate / o->clients, .bursty = o->bursty };
	uint64_t total;

	make_pipes();
	int client = become_clients(o->clients);

	pin(o->first_cpu + client, o->first_cpu + client);
	srand48(o->seed + client);
	p->connect(client == 0);
	if (client == 0 && unlink(o->file) && errno != ENOENT)
		die("%s", o->file);
	a.start = start_together(client, o->clients);
	if (o->rate == 0) {
		total = sum(client, o->clients, saturate(p, a.start, o->warm_up, o->seconds));
		if (client == 0)
			printf("saturation_rps=%.1f\n", total / o->seconds);
		return 0;
	}
	struct work_slot *work = map_work();

	open_window(&window, a.start, o->warm_up, o->seconds, a.rate);
	offer(p, &a, work);
	append_latencies(&window, o->file);
	total = sum(client, o->clients, window.sent);
	if (client == 0)
		print_figures(&window, total);
	return 0;
}

#endif
