/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pgload: one prepared statement, over and over, for a server of the PostgreSQL protocol
 * (version 3.0) on loopback (ask.h). $1, if the statement has it, is a random key from 1 to
 * KEYS. SETUP is run before the clients start. An error ends the load.
 */
#define PROTOCOL "the PostgreSQL protocol"

#include "load.h"

#define HEAD 5 /* of a message: its kind, and its length without the kind */
#define BODY 1024 /* is kept, for messages of errors */

struct answer {
	size_t have;	/* of the head */
	uint32_t left;	/* bytes of the body */
	uint32_t kept;	/* of them */
	char head[HEAD], body[BODY + 1];
};

#include "ask.h"

#define MESSAGES 65536 /* bytes of what is sent at once */
#define MOST_BIND 128

static const char *user, *database, *setup, *query;
static long keys;
static bool keyed;

/* Bytes to send, message by message. */
struct messages {
	size_t length, begun; /* begun: where the last one's length stands */
	char text[MESSAGES];
};

static void add(struct messages *m, const void *bytes, size_t n)
{
	if (m->length + n > sizeof(m->text)) {
		errno = EMSGSIZE;
		die("a statement");
	}
	memcpy(m->text + m->length, bytes, n);
	m->length += n;
}

static void add_string(struct messages *m, const char *s)
{
	add(m, s, strlen(s) + 1);
}

static void add_16(struct messages *m, uint16_t value)
{
	value = htons(value);
	add(m, &value, sizeof(value));
}

static void add_32(struct messages *m, uint32_t value)
{
	value = htonl(value);
	add(m, &value, sizeof(value));
}

static void begin_message(struct messages *m, const char *kind)
{
	add(m, kind, strlen(kind));
	m->begun = m->length;
	add_32(m, 0);
}

static void end_message(struct messages *m)
{
	uint32_t length = htonl(m->length - m->begun);

	memcpy(m->text + m->begun, &length, sizeof(length));
}

static uint32_t body_of(const char *head)
{
	uint32_t length;

	memcpy(&length, head + 1, sizeof(length));
	length = ntohl(length);
	if (length < sizeof(length) || !strchr("123CDEIKNRSTZnst", head[0]))
		refuse("the server does not answer as PostgreSQL does", "");
	return length - sizeof(length);
}

/* An error has fields: a letter and a text each. C is its code, M is what people read. */
static const char *error_field(const char *body, size_t n, char name)
{
	const char *field = body;

	while (field < body + n && *field && *field != name)
		field += strlen(field) + 1;
	return field < body + n && *field ? field + 1 : "";
}

static void refuse_error(const char *body, size_t n)
{
	refuse("the server answers", error_field(body, n, 'M'));
}

/* Reads up to ReadyForQuery. Returns false where the server is still starting. */
static bool await_ready(int fd)
{
	char head[HEAD], body[BODY + 1], rest[BODY];

	do {
		read_all(fd, head, HEAD);
		uint32_t length = body_of(head), kept = length < BODY ? length : BODY, method = 0;

		read_all(fd, body, kept);
		body[kept] = 0;
		for (uint32_t left = length - kept, n; left; left -= n) {
			n = left < BODY ? left : BODY;
			read_all(fd, rest, n);
		}
		if (head[0] == 'E' && !strcmp(error_field(body, kept, 'C'), "57P03"))
			return false;
		if (head[0] == 'E')
			refuse_error(body, kept);
		if (head[0] == 'R' && kept >= sizeof(method))
			memcpy(&method, body, sizeof(method));
		if (method)
			refuse("the server asks for a password: let it trust 127.0.0.1 (pg_hba.conf)", "");
	} while (head[0] != 'Z');
	return true;
}

static bool send_messages(int fd, struct messages *m)
{
	write_all(fd, m->text, m->length);
	m->length = 0;
	return await_ready(fd);
}

static bool start_up(int fd, struct messages *m)
{
	begin_message(m, "");
	add_32(m, 3 << 16);
	add_string(m, "user");
	add_string(m, user);
	add_string(m, "database");
	add_string(m, database);
	add_string(m, "");
	end_message(m);
	return send_messages(fd, m);
}

/* Each connection knows the statement by itself. */
static void greet(int fd)
{
	static struct messages m;

	if (!start_up(fd, &m))
		refuse("the server is starting", "");
	begin_message(&m, "P");
	add_string(&m, "load");
	add_string(&m, query);
	add_16(&m, 0);
	end_message(&m);
	begin_message(&m, "S");
	end_message(&m);
	send_messages(fd, &m);
}

/* It takes connections before it answers: it says that it is starting. */
static void prepare(void)
{
	static struct messages m;
	uint64_t latest = now_ns() + MOST_SILENCE * NSEC;
	int fd = dial();

	while (!start_up(fd, &m)) {
		if (now_ns() > latest)
			refuse("the server is still starting", "");
		close(fd);
		sleep_until(now_ns() + NSEC / 100);
		fd = dial();
	}
	if (*setup) {
		begin_message(&m, "Q");
		add_string(&m, setup);
		end_message(&m);
		send_messages(fd, &m);
	}
	close(fd);
}

static size_t write_request(char *text)
{
	static struct messages m;
	char key[24];

	m.length = 0;
	begin_message(&m, "B");
	add_string(&m, "");
	add_string(&m, "load");
	add_16(&m, 0);
	add_16(&m, keyed);
	if (keyed) {
		int n = sprintf(key, "%ld", 1 + lrand48() % keys);

		add_32(&m, n);
		add(&m, key, n);
	}
	add_16(&m, 0);
	end_message(&m);
	begin_message(&m, "E");
	add_string(&m, "");
	add_32(&m, 0);
	end_message(&m);
	begin_message(&m, "S");
	end_message(&m);
	memcpy(text, m.text, m.length);
	return m.length;
}

static void begin_answer(struct connection *c)
{
	c->answer.have = c->answer.left = 0;
}

static bool ends_by_closing(const struct connection *c)
{
	(void)c;
	return false;
}

/* A message is whole: returns whether it ends the answer. */
static bool end_answer(struct answer *a)
{
	if (a->head[0] == 'E')
		refuse_error(a->body, a->kept);
	a->have = 0;
	return a->head[0] == 'Z';
}

static bool take(struct connection *c, const char *text, size_t n)
{
	struct answer *a = &c->answer;
	bool ended = false;

	while (n && !ended) {
		size_t step = 1;

		if (a->have < HEAD) {
			a->head[a->have++] = *text;
			if (a->have == HEAD) {
				a->left = body_of(a->head);
				a->kept = 0;
				ended = a->left == 0 && end_answer(a);
			}
		} else {
			step = a->left < n ? a->left : n;
			size_t keep = step < BODY - a->kept ? step : BODY - a->kept;

			memcpy(a->body + a->kept, text, keep);
			a->kept += keep;
			a->body[a->kept] = 0;
			a->left -= step;
			ended = a->left == 0 && end_answer(a);
		}
		text += step;
		n -= step;
	}
	if (n)
		refuse("the server sends more than an answer", "");
	return ended;
}

int main(int argc, char **argv)
{
	if (argc != 1 + ASK_WORDS + 5)
		die("usage: pgload " ASK " USER DATABASE SETUP QUERY KEYS");
	char **own = argv + 1 + ASK_WORDS;

	user = own[0];
	database = own[1];
	setup = own[2];
	query = own[3];
	keys = atol(own[4]);
	keyed = strstr(query, "$1");
	most_request = MOST_BIND;
	return ask(argv + 1);
}
