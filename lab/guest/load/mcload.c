/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcload: gets for a memcached on loopback (clients.h).
 *
 * A request asks for KEYS values at once, as a page does that is put together from many.
 * With a single one the client has as much work as the server, and what is measured as
 * the server's saturation is the client's. They are spread over all values: the threads
 * of the server would queue for the lock of a single one.
 */
#include "clients.h"

#define CONNECTIONS 32 /* a client */
#define QUEUE 8192 /* outstanding requests a connection, power of two */
#define KEYS 20	   /* a request */
#define VALUES 1000
#define REQUESTS 100

struct connection {
	int fd;
	unsigned head, tail;
	size_t received; /* of the answer under way */
	struct {
		uint64_t intended, id;
	} queue[QUEUE];
};

static const char end[] = "END\r\n";
#define END (sizeof(end) - 1)
#define ANSWER (KEYS * sizeof("VALUE 000 0 10\r\n0123456789\r" /* and \n */) + END)
#define REQUEST (KEYS * sizeof(" 000") - KEYS + sizeof("get\r\n") - 1)

static char requests[REQUESTS][REQUEST + 1];
static struct connection connections[CONNECTIONS];
static uint16_t port;
static int epoll_fd;

static void store_values(int fd)
{
	for (int key = 0; key < VALUES; key++) {
		char set[64], answer[16] = "";
		int n = sprintf(set, "set %03d 0 0 10\r\n0123456789\r\n", key);

		errno = EPROTO;
		if (write(fd, set, n) != n || read(fd, answer, sizeof(answer)) < 6 || strncmp(answer, "STORED", 6))
			die("what is asked does not answer 'set' as memcached does");
	}
}

/* Written before the clock runs: the generator must be quick. */
static void write_requests(void)
{
	for (int r = 0; r < REQUESTS; r++) {
		int n = sprintf(requests[r], "get");

		for (int i = 0; i < KEYS; i++)
			n += sprintf(requests[r] + n, " %03d", (int)(lrand48() % VALUES));
		memcpy(requests[r] + n, "\r\n", 2);
	}
}

static void open_connections(bool store)
{
	write_requests();
	epoll_fd = epoll_create1(0);
	for (int i = 0; i < CONNECTIONS; i++) {
		struct epoll_event e = { .events = EPOLLIN, .data.u32 = i };

		connections[i].fd = connect_to_server(port);
		if (store && i == 0)
			store_values(connections[i].fd);
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
	if (write(c->fd, requests[lrand48() % REQUESTS], REQUEST) != REQUEST)
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

/* Every answer has one length, which spares the client a look at each byte. */
static int receive(struct connection *c)
{
	static char text[65536];
	ssize_t n = read(c->fd, text, sizeof(text));
	uint64_t at = now_ns();
	int finished = 0;

	if (n == 0 || (n < 0 && errno != EAGAIN))
		die("receive");
	if (n < 0)
		return 0;
	size_t left = c->received + n;

	for (; left >= ANSWER; left -= ANSWER) {
		finish_one(c, at);
		finished++;
	}
	if (left == 0 && (n < (ssize_t)END || memcmp(text + n - END, end, END)))
		die("an answer that does not end in END");
	c->received = left;
	return finished;
}

static void poll_answers(void)
{
	struct epoll_event events[CONNECTIONS];
	int n = epoll_wait(epoll_fd, events, CONNECTIONS, 0);

	for (int i = 0; i < n; i++) {
		struct connection *c = &connections[events[i].data.u32];

		if (receive(c) && closed_loop)
			send_get(c, now_ns(), WARM_UP);
	}
}

static void fill_connections(void)
{
	for (int i = 0; i < CONNECTIONS; i++)
		send_get(&connections[i], now_ns(), WARM_UP);
}

static void due(uint64_t intended, uint64_t id)
{
	send_get(&connections[lrand48() % CONNECTIONS], intended, id);
}

int main(int argc, char **argv)
{
	static const struct protocol memcached = { open_connections, fill_connections, due, poll_answers };

	if (argc != 1 + ORDER_WORDS)
		die("usage: mcload " ORDER);
	struct order order = read_order(argv + 1);

	port = order.port;
	return run_clients(&order, &memcached);
}
