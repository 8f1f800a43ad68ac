/* SPDX-License-Identifier: Apache-2.0 */
/*
 * redisload: GET and SET of random keys for a server of the Redis protocol on loopback
 * (ask.h). All keys are set before the clients start. An error, or a key without a value,
 * ends the load.
 */
#define PROTOCOL "the Redis protocol"

#include "load.h"

#define LINE 256

struct answer {
	uint64_t left; /* bytes of a value, with its end of line; 0: a line */
	size_t have;   /* of the line */
	char line[LINE + 1];
};

#include "ask.h"

#define KEY_DIGITS 7
#define REST 128 /* bytes of a request beside its value, more than enough */

static long keys, value_size;
static double writes; /* share of requests that set */
static char *value;

static size_t write_set(char *text, long key)
{
	size_t n = sprintf(text, "*3\r\n$3\r\nSET\r\n$%d\r\n%0*ld\r\n$%ld\r\n", KEY_DIGITS, KEY_DIGITS, key, value_size);

	memcpy(text + n, value, value_size);
	memcpy(text + n + value_size, "\r\n", 2);
	return n + value_size + 2;
}

static size_t write_request(char *text)
{
	long key = lrand48() % keys;

	if (drand48() < writes)
		return write_set(text, key);
	return sprintf(text, "*2\r\n$3\r\nGET\r\n$%d\r\n%0*ld\r\n", KEY_DIGITS, KEY_DIGITS, key);
}

static void greet(int fd)
{
	(void)fd;
}

static void prepare(void)
{
	static const char ok[] = "+OK\r\n";
	char *set = malloc(most_request), answer[LINE + 1] = "";
	int fd = dial();

	if (!set)
		die("memory for a request");
	for (long key = 0; key < keys; key++) {
		write_all(fd, set, write_set(set, key));
		read_all(fd, answer, strlen(ok));
		if (strcmp(answer, ok)) {
			recv(fd, answer + strlen(ok), LINE - strlen(ok), MSG_DONTWAIT);
			refuse("the server answers SET", answer);
		}
	}
	free(set);
	close(fd);
}

static void begin_answer(struct connection *c)
{
	c->answer.left = c->answer.have = 0;
}

static bool ends_by_closing(const struct connection *c)
{
	(void)c;
	return false;
}

/* Returns whether a line is the whole answer. */
static bool take_line(struct answer *a)
{
	switch (a->line[0]) {
	case '+':
		return true;
	case '$':
		if (a->line[1] == '-')
			refuse("the server has lost a key that was set: give it more memory, or offer fewer keys", "");
		a->left = strtoull(a->line + 1, NULL, 10) + 2;
		return false;
	case '-':
		refuse("the server answers", a->line);
	}
	refuse("the server does not answer as Redis does", a->line);
	return false;
}

static bool take(struct connection *c, const char *text, size_t n)
{
	struct answer *a = &c->answer;
	bool ended = false;

	while (n && !ended) {
		size_t step = 1;

		if (a->left) {
			step = a->left < n ? a->left : n;
			a->left -= step;
			ended = a->left == 0;
		} else {
			if (a->have == LINE)
				refuse("the server does not answer as Redis does", a->line);
			a->line[a->have++] = *text;
			a->line[a->have] = 0;
			ended = *text == '\n' && take_line(a);
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
	if (argc != 1 + ASK_WORDS + 3)
		die("usage: redisload " ASK " KEYS VALUE_SIZE WRITES");
	char **own = argv + 1 + ASK_WORDS;

	keys = atol(own[0]);
	value_size = atol(own[1]);
	writes = atof(own[2]);
	most_request = value_size + REST;
	value = malloc(value_size);
	if (!value)
		die("memory for a value");
	memset(value, 'x', value_size);
	return ask(argv + 1);
}
