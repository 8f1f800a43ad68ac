/* SPDX-License-Identifier: Apache-2.0 */
/*
 * httpload: GET requests for a server of HTTP/1.1 on loopback (ask.h). An answer of status
 * 400 and more ends the load.
 */
#define PROTOCOL "HTTP/1.1"
#define HEAD 16384

#include "load.h"

enum part { HEADER, BODY, CHUNK_SIZE, CHUNK, TRAILER, UNTIL_CLOSE };

struct answer {
	enum part part;
	uint64_t left; /* bytes of the body or chunk */
	size_t have;   /* of the header, or of the line */
	char head[HEAD + 1];
};

#include "ask.h"

static char get[4096];
static size_t get_length;

static void greet(int fd)
{
	(void)fd;
}

static void prepare(void)
{
}

static size_t write_request(char *text)
{
	memcpy(text, get, get_length);
	return get_length;
}

static void begin_answer(struct connection *c)
{
	c->answer.part = HEADER;
	c->answer.have = 0;
}

static bool ends_by_closing(const struct connection *c)
{
	return c->answer.part == UNTIL_CLOSE;
}

/* What follows the header; answers without a body end here. */
static enum part after_header(struct connection *c, bool *ended)
{
	struct answer *a = &c->answer;
	const char *length = strcasestr(a->head, "\r\nContent-Length:");
	int status = 0;

	if (sscanf(a->head, "HTTP/1.%*1d %3d", &status) != 1)
		refuse("the server does not answer as HTTP/1.1 does", a->head);
	if (status >= 400)
		refuse("the server answers", a->head);
	c->closes = strcasestr(a->head, "\r\nConnection: close") || !strncmp(a->head, "HTTP/1.0", 8);
	if (strcasestr(a->head, "\r\nTransfer-Encoding: chunked"))
		return CHUNK_SIZE;
	a->left = length ? strtoull(length + strlen("\r\nContent-Length:"), NULL, 10) : 0;
	*ended = status == 204 || status == 304 || (length && a->left == 0);
	return length || *ended ? BODY : UNTIL_CLOSE;
}

/* Keeps a line or a header up to its end, which it returns true for. */
static bool keep(struct answer *a, char byte, const char *end)
{
	size_t n = strlen(end);

	if (a->have == HEAD)
		refuse("a header or a line of an answer is too long", a->head);
	a->head[a->have++] = byte;
	a->head[a->have] = 0;
	return a->have >= n && !memcmp(a->head + a->have - n, end, n);
}

static bool take(struct connection *c, const char *text, size_t n)
{
	struct answer *a = &c->answer;
	bool ended = false;

	while (n && !ended) {
		size_t step = 1;

		switch (a->part) {
		case HEADER:
			if (keep(a, *text, "\r\n\r\n")) {
				a->part = after_header(c, &ended);
				a->have = 0;
			}
			break;
		case BODY:
		case CHUNK:
			step = a->left < n ? a->left : n;
			a->left -= step;
			if (a->left == 0 && a->part == BODY)
				ended = true;
			else if (a->left == 0)
				a->part = CHUNK_SIZE;
			break;
		case CHUNK_SIZE:
			if (keep(a, *text, "\r\n")) {
				a->left = strtoull(a->head, NULL, 16);
				a->part = a->left ? CHUNK : TRAILER;
				a->left += 2; /* its own end of line */
				a->have = 0;
			}
			break;
		case TRAILER:
			if (keep(a, *text, "\r\n")) {
				ended = a->have == 2;
				a->have = 0;
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

int main(int argc, char **argv)
{
	if (argc != 1 + ASK_WORDS + 2)
		die("usage: httpload " ASK " HOST TARGET");
	char **own = argv + 1 + ASK_WORDS;

	get_length = snprintf(get, sizeof(get), "GET %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: httpload\r\n\r\n", own[1], own[0]);
	if (get_length >= sizeof(get)) {
		errno = EINVAL;
		die("a request of %zu bytes", get_length);
	}
	most_request = get_length;
	return ask(argv + 1);
}
