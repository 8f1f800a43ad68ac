/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What generators share that ask a server on loopback as clients on other machines would:
 * one client a CPU, which never leaves that CPU and never lets it sleep.
 *
 * Clients are processes with connections of their own, and offer equal parts of the rate.
 * The first leads: it says when to start, reads what runs beside, and reports for all.
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

#endif
