/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tricks that have the kernel work in a place where it cannot be interrupted, or in the name of another.
 */
#ifndef TEMPER_TRICKS_KERNEL_H
#define TEMPER_TRICKS_KERNEL_H

#include <linux/filter.h>
#include <linux/if_packet.h>
#include <linux/seccomp.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <net/route.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <termios.h>

#include "ring.h"
#include "trick.h"

/* Filters that take a third of a millisecond a call, for which the kernel binds the task to its CPU. */
static void prepare_filters(void)
{
	enum { LENGTH = 4096, FILTERS = 7 };
	static struct sock_filter code[LENGTH];
	struct sock_fprog program = { LENGTH, code };

	code[0] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0]));
	for (int i = 1; i < LENGTH - 1; i++)
		code[i] = (struct sock_filter)BPF_STMT(BPF_ALU | BPF_ADD | BPF_K, 1);
	code[LENGTH - 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	check(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no new privileges");
	for (int i = 0; i < FILTERS; i++)
		check(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), "filter");
}

static void filtered_call(void)
{
	syscall(SYS_getppid);
}

/* A pipe that one empties while another fills it: they wait for each other at its lock. */
enum { FIGHT = 1 << 20 };
static int fight[2];

static void prepare_fight(void)
{
	static const int size = FIGHT;

	check(!pipe(fight) && fcntl(fight[1], F_SETPIPE_SZ, size) == size, "pipe");
	fcntl(fight[0], F_SETFL, O_NONBLOCK);
	fcntl(fight[1], F_SETFL, O_NONBLOCK);
	for (int i = 0; i < 2; i++) {
		pid_t child = fork();

		check(child >= 0, "fork");
		if (child == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			break;
		}
	}
}

static void fight_one(void)
{
	static char data[FIGHT];

	if (write(fight[1], data, sizeof(data)) < 0)
		(void)!read(fight[0], data, sizeof(data));
}

/* RCU sections, one after the other. */
static void look_up(void)
{
	static char path[4000];
	struct stat s;

	if (!path[0]) {
		strcpy(path, "/tmp");
		for (size_t i = 4; i + 3 < sizeof(path); i += 2)
			memcpy(path + i, "/.", 3);
	}
	check(!stat(path, &s), "stat");
}

static void expedite(void)
{
	static bool ready;

	if (!ready) {
		check(!syscall(SYS_membarrier, 1 << 4, 0, 0), "membarrier"); /* to be told of: private, at once */
		syscall(SYS_membarrier, 1 << 2, 0, 0); /* and of all */
		ready = true;
	}
	syscall(SYS_membarrier, 1 << 3, 0, 0);
	syscall(SYS_membarrier, 1 << 1, 0, 0);
	compute(SHORT);
}

/* A child makes namespaces and goes: what it leaves the kernel's workers clear away. */
static void namespaces(void)
{
	pid_t child = fork();

	check(child >= 0, "fork");
	if (child == 0) {
		_exit(unshare(CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS) ? 1 : 0);
	}
	int status;

	check(waitpid(child, &status, 0) == child, "wait");
	if (status)
		refused = true;
}

/*
 * Packets that go round in a network of our own: each is forwarded from the loopback device to itself until it has no hops left,
 * by the kernel's thread of the CPU, in the name of nobody.
 */
enum { PACKETS = 500, MOST_HOPS = 255 };

static int network;
static char packet[64];

/* To be root of namespaces of our own. */
static void become_root_of(int namespaces)
{
	char map[32];
	int id = getuid();

	snprintf(map, sizeof(map), "0 %d 1", id);
	check(!unshare(CLONE_NEWUSER | namespaces), "namespaces of our own");
	write_file("/proc/self/uid_map", map);
}

static void prepare_packets(void)
{
	struct ifreq loopback = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	struct rtentry route = { .rt_flags = RTF_UP, .rt_dev = (char *)"lo" };
	struct sockaddr_in *to = (void *)&route.rt_dst, *mask = (void *)&route.rt_genmask;
	struct iphdr *ip = (void *)packet;
	uint32_t sum = 0;

	become_root_of(CLONE_NEWNET);
	network = socket(AF_INET, SOCK_DGRAM, 0);
	check(network >= 0 && !ioctl(network, SIOCSIFFLAGS, &loopback), "loopback");
	to->sin_family = mask->sin_family = AF_INET;
	to->sin_addr.s_addr = htonl(0x0a090900);
	mask->sin_addr.s_addr = htonl(0xffffff00);
	check(!ioctl(network, SIOCADDRT, &route), "route");
	write_file("/proc/sys/net/ipv4/ip_forward", "1");
	write_file("/proc/sys/net/ipv4/conf/all/send_redirects", "0");
	write_file("/proc/sys/net/ipv4/conf/lo/send_redirects", "0");
	*ip = (struct iphdr){ .version = 4, .ihl = 5, .tot_len = htons(sizeof(packet)), .ttl = MOST_HOPS, .protocol = IPPROTO_UDP,
			      .saddr = htonl(0x0a010101), .daddr = htonl(0x0a090909) };
	for (size_t i = 0; i < sizeof(*ip) / 2; i++)
		sum += ((uint16_t *)packet)[i];
	ip->check = ~(sum + (sum >> 16));
	network = socket(AF_PACKET, SOCK_DGRAM, 0);
	check(network >= 0, "packets");
}

static void send_packets(void)
{
	struct sockaddr_ll to = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_IP), .sll_ifindex = 1, .sll_halen = 6 };

	/* A full queue drops them. */
	for (int i = 0; i < PACKETS; i++)
		sendto(network, packet, sizeof(packet), MSG_DONTWAIT, (void *)&to, sizeof(to));
}

/*
 * A terminal of our own, written to as fast as it takes: to edit and to echo what arrives is for the kernel's workers, in the
 * name of nobody.
 */
static int terminal;
static char typed[4096];

static void prepare_terminal(void)
{
	enum { LINE = 2000, KILL_LINE = 0x15 };
	static const int locked = 0;
	struct termios t;
	int user;

	become_root_of(CLONE_NEWNS);
	check(!mount("devpts", "/tmp", "devpts", 0, "newinstance,ptmxmode=0666"), "devpts");
	terminal = open("/tmp/ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK);
	check(terminal >= 0 && !ioctl(terminal, TIOCSPTLCK, &locked), "terminal");
	user = ioctl(terminal, TIOCGPTPEER, O_RDWR | O_NOCTTY);
	check(user >= 0 && !tcgetattr(user, &t), "its other end");
	t.c_lflag |= ICANON | ECHO | ECHOE | ECHOK | ECHOCTL | ECHOKE | ISIG | IEXTEN;
	t.c_iflag |= ICRNL | IUCLC;
	check(!tcsetattr(user, 0, &t), "its settings");
	for (size_t i = 0; i < sizeof(typed); i++)
		typed[i] = i % LINE == LINE - 1 ? KILL_LINE : i % 50 == 49 ? '\t' : 'a';
}

static void type(void)
{
	static char echo[65536];
	struct pollfd ready = { terminal, POLLOUT | POLLIN, 0 };

	if (write(terminal, typed, sizeof(typed)) < 0)
		poll(&ready, 1, 10);
	while (read(terminal, echo, sizeof(echo)) > 0)
		;
}

/*
 * Sockets that only other sockets still know. The kernel's workers look for those among all that are under way, one look for
 * each that is closed, with preemption off: a long chain makes the look long, and pairs that hold themselves are new ones to look for.
 */
enum { CHAIN = 1000 };

static void send_sockets(int by, const int sockets[2])
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(2 * sizeof(int))];
	} control = { .head = { .cmsg_len = CMSG_LEN(2 * sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS } };
	struct iovec data = { (void *)"", 1 };
	struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control) };

	memcpy(CMSG_DATA(&control.head), sockets, 2 * sizeof(int));
	sendmsg(by, &message, MSG_DONTWAIT); /* some are refused: too many are under way */
}

static void prepare_sockets(void)
{
	int last[2], next[2];
	struct rlimit files;

	check(!getrlimit(RLIMIT_NOFILE, &files), "limit of files");
	files.rlim_cur = files.rlim_max;
	check(!setrlimit(RLIMIT_NOFILE, &files), "limit of files");
	check(!socketpair(AF_UNIX, SOCK_DGRAM, 0, last), "sockets");
	dup(last[0]); /* of the chain's end somebody knows */
	for (int i = 0; i < CHAIN && !socketpair(AF_UNIX, SOCK_DGRAM, 0, next); i++) {
		send_sockets(next[1], last);
		close(last[0]);
		close(last[1]);
		memcpy(last, next, sizeof(last));
	}
}

static void lose_sockets(void)
{
	int lost[2];

	check(!socketpair(AF_UNIX, SOCK_DGRAM, 0, lost), "sockets");
	send_sockets(lost[1], lost);
	close(lost[0]);
	close(lost[1]);
}

/* A thread of the kernel that polls a ring of ours. */
static void prepare_ring(void)
{
	struct io_uring_params p = { .flags = IORING_SETUP_SQPOLL, .sq_thread_idle = 100000 };

	if (syscall(SYS_io_uring_setup, 8, &p) < 0)
		refused = true;
}

/* A hundred timers that expire all the time. */
static void prepare_timers(void)
{
	for (int i = 0; i < 100; i++) {
		struct itimerspec often = { { 0, 100000 }, { 0, 100000 } };
		int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);

		check(fd >= 0 && !timerfd_settime(fd, 0, &often, NULL), "timer");
	}
}

/* Sleeps that end just as a tick or a turn would. */
static void nap(void)
{
	struct timespec t = { 0, 50000 };

	compute(4 * SHORT);
	nanosleep(&t, NULL);
}

/* Threads that take turns at a mutex whose owner inherits priority. */
static pthread_mutex_t inheriting;

static void *take_turns(void *unused)
{
	for (;;) {
		pthread_mutex_lock(&inheriting);
		compute(SHORT);
		pthread_mutex_unlock(&inheriting);
	}
	return unused;
}

static void prepare_inheriting(void)
{
	pthread_mutexattr_t attr;
	pthread_t thread;

	check(!pthread_mutexattr_init(&attr) && !pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT) &&
	      !pthread_mutex_init(&inheriting, &attr) && !pthread_create(&thread, NULL, take_turns, NULL), "mutex");
}

static void inherit(void)
{
	pthread_mutex_lock(&inheriting);
	compute(SHORT);
	pthread_mutex_unlock(&inheriting);
}

#endif
