/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcload: gets for a memcached on loopback, from one CPU that it never leaves and
 * never lets sleep, as a client on another machine would send them. Open loop;
 * with RATE 0, closed loop, one request outstanding a connection, to find the
 * saturation: it prints requests a second.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "load.h"

#define CONNECTIONS 8
#define QUEUE 8192 /* outstanding requests a connection, power of two */
#define VALUE 100  /* bytes */
#define DRAIN (NSEC / 2)
#define WARM_UP UINT64_MAX

struct connection {
	int fd;
	unsigned head, tail, state; /* state: how much of "END\r\n" has been seen */
	struct {
		uint64_t intended, id;
	} queue[QUEUE];
};

static struct connection connections[CONNECTIONS];
static struct window window;
static uint64_t answered;
static int epoll_fd;

static int connect_to_server(uint16_t port)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int one = 1, fd = socket(AF_INET, SOCK_STREAM, 0);

	if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)))
		die("connect to memcached");
	if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)))
		die("TCP_NODELAY");
	return fd;
}

static void store_value(int fd)
{
	char text[VALUE + 64], answer[16] = "";
	int n = sprintf(text, "set k 0 0 %d\r\n", VALUE);

	memset(text + n, 'x', VALUE);
	memcpy(text + n + VALUE, "\r\n", 2);
	if (write(fd, text, n + VALUE + 2) < 0 || read(fd, answer, sizeof(answer)) < 6 || strncmp(answer, "STORED", 6))
		die("set");
}

static void open_connections(uint16_t port)
{
	epoll_fd = epoll_create1(0);
	for (int i = 0; i < CONNECTIONS; i++) {
		struct epoll_event e = { .events = EPOLLIN, .data.u32 = i };

		connections[i].fd = connect_to_server(port);
		if (i == 0)
			store_value(connections[i].fd);
		if (fcntl(connections[i].fd, F_SETFL, O_NONBLOCK) || epoll_ctl(epoll_fd, EPOLL_CTL_ADD, connections[i].fd, &e))
			die("connection %d", i);
	}
}

static void send_get(struct connection *c, uint64_t intended, uint64_t id)
{
	if (c->tail - c->head == QUEUE) {
		errno = ENOBUFS;
		die("more than %d requests outstanding", QUEUE);
	}
	c->queue[c->tail & (QUEUE - 1)].intended = intended;
	c->queue[c->tail++ & (QUEUE - 1)].id = id;
	if (write(c->fd, "get k\r\n", 7) != 7)
		die("send");
}

static void finish_one(struct connection *c, uint64_t at)
{
	uint64_t id = c->queue[c->head & (QUEUE - 1)].id;

	answered++;
	if (id != WARM_UP)
		window.latency[id] = at - c->queue[c->head & (QUEUE - 1)].intended;
	c->head++;
}

/* Answers end in "END\r\n", which no value of x's can hold. */
static int receive(struct connection *c)
{
	static const char end[] = "END\r\n";
	char text[65536];
	ssize_t n = read(c->fd, text, sizeof(text));
	uint64_t at = now_ns();
	int finished = 0;

	if (n == 0 || (n < 0 && errno != EAGAIN))
		die("receive");
	for (ssize_t i = 0; i < n; i++) {
		c->state = text[i] == end[c->state] ? c->state + 1 : text[i] == end[0];
		if (c->state == sizeof(end) - 1) {
			c->state = 0;
			finish_one(c, at);
			finished++;
		}
	}
	return finished;
}

static void poll_answers(bool send_next)
{
	struct epoll_event events[CONNECTIONS];
	int n = epoll_wait(epoll_fd, events, CONNECTIONS, 0);

	for (int i = 0; i < n; i++) {
		struct connection *c = &connections[events[i].data.u32];

		if (receive(c) && send_next)
			send_get(c, now_ns(), WARM_UP);
	}
}

static void saturate(double warm_up, double seconds)
{
	uint64_t begin = now_ns() + (uint64_t)(warm_up * NSEC), end = begin + (uint64_t)(seconds * NSEC), before = 0, at;

	for (int i = 0; i < CONNECTIONS; i++)
		send_get(&connections[i], now_ns(), WARM_UP);
	while ((at = now_ns()) < end) {
		if (at < begin)
			before = answered;
		poll_answers(true);
	}
	printf("saturation_rps=%.1f\n", (answered - before) / seconds);
}

static void offer(struct arrivals *a, struct work_slot *work)
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
			send_get(&connections[lrand48() % CONNECTIONS], at, at >= window.begin ? window.sent++ : WARM_UP);
		poll_answers(false);
	}
}

int main(int argc, char **argv)
{
	if (argc != 9)
		die("usage: mcload PORT RATE WARM_UP_S SECONDS SEED BURSTY CPU LATENCY_FILE");
	struct arrivals a = { .rate = atof(argv[2]), .bursty = atoi(argv[6]) };
	double warm_up = atof(argv[3]), seconds = atof(argv[4]);

	srand48(atol(argv[5]));
	pin(atoi(argv[7]), atoi(argv[7]));
	open_connections(atoi(argv[1]));
	if (a.rate == 0) {
		saturate(warm_up, seconds);
		return 0;
	}
	struct work_slot *work = map_work();

	a.start = now_ns() + NSEC / 50;
	open_window(&window, a.start, warm_up, seconds, a.rate);
	offer(&a, work);
	report(&window, argv[8]);
	return 0;
}
