/* SPDX-License-Identifier: Apache-2.0 */
/*
 * httpload: GET requests for a server of HTTP/1.1 on loopback (clients.h). Open loop;
 * with RATE 0, closed loop, to find the saturation: it prints requests a second.
 *
 * A connection has one request under way. One that is due while all are taken waits in
 * the client, and its latency counts from when it was due. Connections stay open; one
 * that the server closes is opened anew, and a request that it had not begun to answer
 * is sent again. An answer of status 400 and more ends the load.
 */
#include "clients.h"

#define MOST_CONNECTIONS 1024
#define WAITING (1 << 16) /* due requests without a connection, power of two */
#define HEAD 16384

enum part { HEADER, BODY, CHUNK_SIZE, CHUNK, TRAILER, UNTIL_CLOSE };

struct request {
	uint64_t intended, id;
};

struct connection {
	int fd;
	bool busy, again, closes;
	struct request request;
	enum part part;
	uint64_t left; /* bytes of the body or chunk */
	size_t have;   /* of the header, or of the line */
	char head[HEAD + 1];
};

static struct connection connections[MOST_CONNECTIONS];
static int idle[MOST_CONNECTIONS], idles, connection_count;
static struct request waiting[WAITING];
static unsigned first_waiting, last_waiting;
static char get[4096];
static size_t get_length;
static uint16_t port;
static struct window window;
static uint64_t answered;
static bool closed_loop;
static int epoll_fd;

static void refuse(const char *what, const char *line)
{
	int length = strcspn(line, "\r\n");

	fprintf(stderr, "httpload: %s%s%.*s\n", what, length ? ": " : "", length, line);
	exit(1);
}

static void open_connection(struct connection *c)
{
	struct epoll_event e = { .events = EPOLLIN, .data.u32 = c - connections };

	c->fd = connect_to_server(port);
	if (fcntl(c->fd, F_SETFL, O_NONBLOCK) || epoll_ctl(epoll_fd, EPOLL_CTL_ADD, c->fd, &e))
		die("connection %u", e.data.u32);
}

static void reopen(struct connection *c)
{
	close(c->fd);
	open_connection(c);
}

static void send_get(struct connection *c)
{
	c->part = HEADER;
	c->have = 0;
	c->closes = false;
	/* A server may have closed the connection, which shows now or with the answer. */
	if (send(c->fd, get, get_length, MSG_NOSIGNAL) == (ssize_t)get_length)
		return;
	reopen(c);
	if (send(c->fd, get, get_length, MSG_NOSIGNAL) != (ssize_t)get_length)
		die("send");
}

static void begin(struct connection *c, struct request r)
{
	c->busy = true;
	c->again = false;
	c->request = r;
	send_get(c);
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

/* What follows the header; answers without a body end here. */
static enum part after_header(struct connection *c, bool *ended)
{
	const char *length = strcasestr(c->head, "\r\nContent-Length:");
	int status = 0;

	if (sscanf(c->head, "HTTP/1.%*1d %3d", &status) != 1)
		refuse("the server does not answer as HTTP/1.1 does", c->head);
	if (status >= 400)
		refuse("the server answers", c->head);
	c->closes = strcasestr(c->head, "\r\nConnection: close") || !strncmp(c->head, "HTTP/1.0", 8);
	if (strcasestr(c->head, "\r\nTransfer-Encoding: chunked"))
		return CHUNK_SIZE;
	c->left = length ? strtoull(length + strlen("\r\nContent-Length:"), NULL, 10) : 0;
	*ended = status == 204 || status == 304 || (length && c->left == 0);
	if (length || *ended)
		return BODY;
	c->closes = true;
	return UNTIL_CLOSE;
}

/* Keeps a line or a header up to its end, which it returns true for. */
static bool keep(struct connection *c, char byte, const char *end)
{
	size_t n = strlen(end);

	if (c->have == HEAD)
		refuse("a header or a line of an answer is too long", c->head);
	c->head[c->have++] = byte;
	c->head[c->have] = 0;
	return c->have >= n && !memcmp(c->head + c->have - n, end, n);
}

/* Returns whether the answer has ended. Servers send nothing beyond it, since nothing more was asked. */
static bool take(struct connection *c, const char *text, size_t n)
{
	bool ended = false;

	while (n && !ended) {
		size_t step = 1;

		switch (c->part) {
		case HEADER:
			if (keep(c, *text, "\r\n\r\n")) {
				c->part = after_header(c, &ended);
				c->have = 0;
			}
			break;
		case BODY:
		case CHUNK:
			step = c->left < n ? c->left : n;
			c->left -= step;
			if (c->left == 0 && c->part == BODY)
				ended = true;
			else if (c->left == 0)
				c->part = CHUNK_SIZE;
			break;
		case CHUNK_SIZE:
			if (keep(c, *text, "\r\n")) {
				c->left = strtoull(c->head, NULL, 16);
				c->part = c->left ? CHUNK : TRAILER;
				c->left += 2; /* its own end of line */
				c->have = 0;
			}
			break;
		case TRAILER:
			if (keep(c, *text, "\r\n")) {
				ended = c->have == 2;
				c->have = 0;
			}
			break;
		case UNTIL_CLOSE:
			step = n;
		}
		text += step;
		n -= step;
	}
	if (n)
		refuse("the server sends more than an answer", text);
	return ended;
}

static void closed(struct connection *c, uint64_t at)
{
	if (!c->busy) {
		reopen(c);
	} else if (c->part == UNTIL_CLOSE) {
		finish(c, at);
	} else if (c->part == HEADER && c->have == 0 && !c->again) {
		c->again = true;
		reopen(c);
		send_get(c);
	} else {
		refuse("the server closes a connection before it has answered: does it speak HTTP/1.1?", "");
	}
}

static void receive(struct connection *c)
{
	static char text[65536];
	ssize_t n = read(c->fd, text, sizeof(text));
	uint64_t at = now_ns();

	if (n > 0 && !c->busy)
		refuse("the server sends what nobody asked for", text);
	if (n > 0) {
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
	int n = epoll_wait(epoll_fd, events, 64, 0);

	for (int i = 0; i < n; i++)
		receive(&connections[events[i].data.u32]);
}

/* Returns how many were answered in the measured part. */
static uint64_t saturate(uint64_t start, double warm_up, double seconds)
{
	uint64_t from = start + (uint64_t)(warm_up * NSEC), end = from + (uint64_t)(seconds * NSEC), before = 0, at;

	closed_loop = true;
	while (idles)
		begin(&connections[idle[--idles]], (struct request){ now_ns(), WARM_UP });
	while ((at = now_ns()) < end) {
		if (at < from)
			before = answered;
		poll_answers();
	}
	return answered - before;
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
			due(at, at >= window.begin ? window.sent++ : WARM_UP);
		begin_waiting();
		poll_answers();
	}
}

int main(int argc, char **argv)
{
	if (argc != 13)
		die("usage: httpload PORT HOST TARGET CONNECTIONS RATE WARM_UP_S SECONDS SEED BURSTY FIRST_CPU LAST_CPU LATENCY_FILE");
	int first_cpu = atoi(argv[10]), clients = atoi(argv[11]) - first_cpu + 1;
	double rate = atof(argv[5]), warm_up = atof(argv[6]), seconds = atof(argv[7]);
	struct arrivals a = { .rate = rate / clients, .bursty = atoi(argv[9]) };
	const char *file = argv[12];
	uint64_t total;

	port = atoi(argv[1]);
	get_length = snprintf(get, sizeof(get), "GET %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: httpload\r\n\r\n", argv[3], argv[2]);
	connection_count = atoi(argv[4]);
	if (get_length >= sizeof(get) || connection_count < 1 || connection_count > MOST_CONNECTIONS) {
		errno = EINVAL;
		die("a request of %zu bytes, %d connections", get_length, connection_count);
	}
	make_pipes();
	int client = become_clients(clients);

	pin(first_cpu + client, first_cpu + client);
	srand48(atol(argv[8]) + client);
	epoll_fd = epoll_create1(0);
	for (int i = 0; i < connection_count; i++) {
		open_connection(&connections[i]);
		idle[idles++] = i;
	}
	if (client == 0 && unlink(file) && errno != ENOENT)
		die("%s", file);
	a.start = start_together(client, clients);
	if (rate == 0) {
		total = sum(client, clients, saturate(a.start, warm_up, seconds));
		if (client == 0)
			printf("saturation_rps=%.1f\n", total / seconds);
		return 0;
	}
	struct work_slot *work = map_work();

	open_window(&window, a.start, warm_up, seconds, a.rate);
	offer(&a, work);
	append_latencies(&window, file);
	total = sum(client, clients, window.sent);
	if (client == 0)
		print_figures(&window, total);
	return 0;
}
