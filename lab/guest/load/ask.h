/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What clients (clients.h) share of which each connection has one request under way.
 *
 * A request that is due while all connections are taken waits in the client, and its
 * latency counts from when it was due. Connections stay open; one that the server closes
 * is opened anew, and a request that it had not begun to answer is sent again.
 *
 * Who includes this defines PROTOCOL, struct answer, and the functions declared below.
 */
#ifndef TEMPER_ASK_H
#define TEMPER_ASK_H

#include "clients.h"

#define MOST_CONNECTIONS 1024
#define MOST_SILENCE 30 /* seconds, of a server that is greeted */
#define WAITING (1 << 16) /* due requests without a connection, power of two */

struct request {
	uint64_t intended, id;
};

struct connection {
	int fd;
	bool busy, again, answering, closes;
	struct request request;
	char *text; /* of the request */
	size_t length;
	struct answer answer;
};

/* On each connection that was opened, before requests. It may block. */
static void greet(int fd);
/* Before the clients start. */
static void prepare(void);
/* Writes the next request, of up to most_request bytes, and returns how many. */
static size_t write_request(char *text);
/* A request has been sent. */
static void begin_answer(struct connection *c);
/* Takes some of an answer, and returns whether it has ended. Nothing follows it: nothing more was asked. */
static bool take(struct connection *c, const char *text, size_t n);
/* Whether the answer under way ends with the connection. */
static bool ends_by_closing(const struct connection *c);

static size_t most_request;
static struct connection connections[MOST_CONNECTIONS];
static int idle[MOST_CONNECTIONS], idles, connection_count;
static struct request waiting[WAITING];
static unsigned first_waiting, last_waiting;
static uint16_t port;
static int epoll_fd;

static void refuse(const char *what, const char *line)
{
	int length = strcspn(line, "\r\n");

	fprintf(stderr, "%s: %s%s%.*s\n", program_invocation_short_name, what, length ? ": " : "", length, line);
	exit(1);
}

/* A connection that blocks, but not for ever. */
static int dial(void)
{
	struct timeval most = { .tv_sec = MOST_SILENCE };
	int fd = connect_to_server(port);

	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most)))
		die("SO_RCVTIMEO");
	return fd;
}

static inline void read_all(int fd, void *to, size_t n)
{
	ssize_t got = recv(fd, to, n, MSG_WAITALL);

	if (got < 0 && errno == EAGAIN)
		refuse("the server does not answer: does it speak " PROTOCOL "?", "");
	if (got < 0)
		die("receive");
	if ((size_t)got != n)
		refuse("the server closes a connection before it has answered: does it speak " PROTOCOL "?", "");
}

static void write_all(int fd, const char *text, size_t length)
{
	if (send(fd, text, length, MSG_NOSIGNAL) != (ssize_t)length)
		die("send");
}

static void open_connection(struct connection *c)
{
	struct epoll_event e = { .events = EPOLLIN, .data.u32 = c - connections };

	c->fd = dial();
	greet(c->fd);
	if (fcntl(c->fd, F_SETFL, O_NONBLOCK) || epoll_ctl(epoll_fd, EPOLL_CTL_ADD, c->fd, &e))
		die("connection %u", e.data.u32);
}

static void reopen(struct connection *c)
{
	close(c->fd);
	open_connection(c);
}

static void send_request(struct connection *c)
{
	c->answering = c->closes = false;
	begin_answer(c);
	/* A server may have closed the connection, which shows now or with the answer. */
	if (send(c->fd, c->text, c->length, MSG_NOSIGNAL) == (ssize_t)c->length)
		return;
	reopen(c);
	write_all(c->fd, c->text, c->length);
}

static void begin(struct connection *c, struct request r)
{
	c->busy = true;
	c->again = false;
	c->request = r;
	c->length = write_request(c->text);
	send_request(c);
}

static void begin_waiting(void)
{
	while (idles && first_waiting != last_waiting)
		begin(&connections[idle[--idles]], waiting[first_waiting++ & (WAITING - 1)]);
}

static void due(uint64_t intended, uint64_t id)
{
	if (last_waiting - first_waiting == WAITING)
		refuse("65536 requests wait for a connection: the service is slower than the rate; offer less, or use more connections", "");
	waiting[last_waiting++ & (WAITING - 1)] = (struct request){ intended, id };
}

static void finish(struct connection *c, uint64_t at)
{
	answered++;
	if (c->request.id != WARM_UP)
		window.latency[c->request.id] = at - c->request.intended;
	c->busy = false;
	if (c->closes)
		reopen(c);
	if (closed_loop)
		begin(c, (struct request){ at, WARM_UP });
	else
		idle[idles++] = c - connections;
}

static void closed(struct connection *c, uint64_t at)
{
	if (!c->busy) {
		reopen(c);
	} else if (ends_by_closing(c)) {
		c->closes = true;
		finish(c, at);
	} else if (!c->answering && !c->again) {
		c->again = true;
		reopen(c);
		send_request(c);
	} else {
		refuse("the server closes a connection before it has answered: does it speak " PROTOCOL "?", "");
	}
}

static void receive(struct connection *c)
{
	static char text[65536 + 1];
	ssize_t n = read(c->fd, text, sizeof(text) - 1);
	uint64_t at = now_ns();

	text[n > 0 ? n : 0] = 0;
	if (n > 0 && !c->busy)
		refuse("the server sends what nobody asked for", text);
	if (n > 0) {
		c->answering = true;
		if (take(c, text, n))
			finish(c, at);
	} else if (n == 0 || errno == ECONNRESET) {
		closed(c, at);
	} else if (errno != EAGAIN) {
		die("receive");
	}
}

static void poll_answers(void)
{
	struct epoll_event events[64];

	begin_waiting();
	int n = epoll_wait(epoll_fd, events, 64, 0);

	for (int i = 0; i < n; i++)
		receive(&connections[events[i].data.u32]);
}

static void open_connections(bool first)
{
	(void)first;
	epoll_fd = epoll_create1(0);
	for (int i = 0; i < connection_count; i++) {
		connections[i].text = malloc(most_request);
		if (!connections[i].text)
			die("memory for requests");
		open_connection(&connections[i]);
		idle[idles++] = i;
	}
}

static void fill_connections(void)
{
	while (idles)
		begin(&connections[idle[--idles]], (struct request){ now_ns(), WARM_UP });
}

#define ASK ORDER " CONNECTIONS PREPARE"
#define ASK_WORDS (ORDER_WORDS + 2)

/* Runs clients as the words of ASK say. */
static int ask(char **words)
{
	static const struct protocol one_a_connection = { open_connections, fill_connections, due, poll_answers };
	struct order order = read_order(words);

	port = order.port;
	connection_count = atoi(words[ORDER_WORDS]);
	if (connection_count < 1 || connection_count > MOST_CONNECTIONS) {
		errno = EINVAL;
		die("%d connections", connection_count);
	}
	if (atoi(words[ORDER_WORDS + 1]))
		prepare();
	return run_clients(&order, &one_a_connection);
}

#endif
