/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reach TRICK CGROUP USER: tries to get CPU time beyond its due, without an end. CGROUP is the folder of a cgroup that it
 * owns, with children a and b; it was started in a. USER: `user`, or `container`: root in a cgroup namespace of its own,
 * with the capabilities that a container has. Says "\n" once it does what it is to do, or "refused" where the kernel
 * does not let it: then it computes.
 */
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/if_packet.h>
#include <linux/seccomp.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <net/route.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "ring.h"

static const char *own; /* the cgroup */

static bool refused;

/* What the kernel must not let it do. */
static void must_fail(bool failed)
{
	refused = true;
	if (!failed) {
		fprintf(stderr, "reach: the kernel has let it\n");
		exit(1);
	}
}

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);

	check(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text), path);
	close(fd);
}

static void write_to(const char *cgroup, const char *file, const char *text)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/%s/%s", own, cgroup, file);
	write_file(path, text);
}

static void make_cgroup(const char *name)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/%s", own, name);
	check(!mkdir(path, 0755) || errno == EEXIST, path);
}

static void spin(void)
{
	compute(10 * SHORT);
}

static void make_and_remove(void)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/b/%d", own, getpid());
	check(!mkdir(path, 0755) && !rmdir(path), path);
}

/* Processes and threads between own cgroups, at a high rate. */
static void move_process(void)
{
	write_to("b", "cgroup.procs", "0");
	compute(SHORT);
	write_to("a", "cgroup.procs", "0");
	compute(SHORT);
}

static void prepare_threads(void)
{
	make_cgroup("b/x");
	make_cgroup("b/y");
	write_to("b/x", "cgroup.type", "threaded");
	write_to("b/y", "cgroup.type", "threaded");
	write_to("b", "cgroup.procs", "0");
}

static void move_thread(void)
{
	write_to("b/x", "cgroup.threads", "0");
	compute(SHORT);
	write_to("b/y", "cgroup.threads", "0");
	compute(SHORT);
}

/* Of a kernel thread, and of a cgroup that is the system's. */
static void prepare_names(void)
{
	make_cgroup("b/system.slice");
	write_to("b/system.slice", "cgroup.procs", "0");
}

static void rename_self(void)
{
	static const char *const names[] = { "kworker/0:0", "migration/0", "systemd", "scx_temper" };
	static int i;

	prctl(PR_SET_NAME, names[i++ % 4]);
	compute(SHORT);
}

/* A child for each step down, since nobody may go up again. */
static void renice(void)
{
	pid_t child = fork();

	check(child >= 0, "fork");
	if (child == 0) {
		for (int nice = 1; nice < 20; nice++) {
			setpriority(PRIO_PROCESS, 0, nice);
			compute(SHORT);
		}
		_exit(0);
	}
	check(waitpid(child, NULL, 0) == child, "wait");
}

static void autogroup(void)
{
	static int fd = -1;

	if (fd < 0) {
		setsid();
		fd = open("/proc/self/autogroup", O_WRONLY);
		check(fd >= 0, "autogroup");
	}
	if (write(fd, "5", 1) != 1)
		check(errno == EAGAIN || errno == EPERM, "autogroup");
	compute(SHORT);
}

struct attributes {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
	uint32_t util_min, util_max;
};

static bool set_attributes(uint32_t policy, uint64_t flags, uint32_t priority)
{
	struct attributes a = {
		.size = sizeof(a), .policy = policy, .flags = flags, .priority = priority,
		.runtime = policy == 6 ? 5000000 : 100000, .deadline = policy == 6 ? 10000000 : 0, .period = policy == 6 ? 10000000 : 0,
		.util_min = 1024, .util_max = 1024,
	};

	return !syscall(SYS_sched_setattr, 0, &a, 0);
}

static void change_policy(void)
{
	static const uint32_t policies[] = { SCHED_BATCH, SCHED_OTHER, 7 /* SCHED_EXT */, SCHED_OTHER };
	static int i;

	set_attributes(policies[i++ % 4], 0, 0);
	compute(SHORT);
}

static void prepare_idle(void)
{
	check(set_attributes(SCHED_IDLE, 0, 0), "SCHED_IDLE");
}

static void prepare_deadline(void)
{
	must_fail(!set_attributes(6 /* SCHED_DEADLINE */, 0, 0) && !set_attributes(SCHED_FIFO, 0, 1));
}

/* With SCHED_FLAG_KEEP_ALL and both clamps; a kernel may be built without. */
static void clamp(void)
{
	if (!set_attributes(0, 0x18 | 0x60, 0))
		refused = true;
	compute(SHORT);
}

static void change_affinity(void)
{
	static int i, cpus;

	if (!cpus)
		cpus = sysconf(_SC_NPROCESSORS_ONLN);
	int cpu = i++ % (cpus + 1);

	if (cpu == cpus)
		pin(0, cpus - 1);
	else
		pin(cpu, cpu);
	compute(SHORT);
}

static void fork_one(void)
{
	pid_t child = fork();

	check(child >= 0, "fork");
	if (child == 0) {
		compute(SHORT);
		_exit(0);
	}
	check(waitpid(child, NULL, 0) == child, "wait");
}

/* A child that computes for as long as its parent is thought to wait for it. */
static void vfork_one(void)
{
	if (vfork() == 0)
		for (;;)
			compute(SHORT);
}

/* The same, of whose parent it says that it is its own: that is somebody else, who does not wait. */
static void vfork_sibling(void)
{
	pid_t child = syscall(SYS_clone, CLONE_VFORK | CLONE_PARENT | SIGCHLD, NULL, NULL, NULL, NULL);

	check(child >= 0, "clone");
	if (child == 0)
		for (;;)
			compute(SHORT);
}

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

/* Timers that ask the process to stop, and to go on. */
static void start_timer(int signal, long first, long period)
{
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = signal };
	struct itimerspec times = { .it_interval = { 0, period }, .it_value = { 0, first } };
	timer_t timer;

	check(!timer_create(CLOCK_MONOTONIC, &event, &timer) && !timer_settime(timer, 0, &times, NULL), "timer");
}

static void stop(void)
{
	static int rounds;

	/* Not in the first one: it would never get that far. */
	if (rounds++ == 1) {
		long first = 1000000 + lrand48() % 1000000;

		start_timer(SIGSTOP, first, 2000000);
		start_timer(SIGCONT, first + 1000000, 2000000);
	}
	compute(10 * SHORT);
}

/* Signals that stop nobody, each of which the kernel has to deliver. */
static void ignore(int signal)
{
	(void)signal;
}

static void prepare_signals(void)
{
	signal(SIGALRM, ignore);
	start_timer(SIGALRM, 100000, 100000);
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

static void become_root_of_a_network(void)
{
	char map[32];
	int id = getuid();

	snprintf(map, sizeof(map), "0 %d 1", id);
	if (unshare(CLONE_NEWUSER | CLONE_NEWNET))
		die("a network of our own");
	write_file("/proc/self/uid_map", map);
}

static void prepare_packets(void)
{
	struct ifreq loopback = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	struct rtentry route = { .rt_flags = RTF_UP, .rt_dev = (char *)"lo" };
	struct sockaddr_in *to = (void *)&route.rt_dst, *mask = (void *)&route.rt_genmask;
	struct iphdr *ip = (void *)packet;
	uint32_t sum = 0;

	become_root_of_a_network();
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

/* A cgroup of its own that is frozen and thawed: each time the kernel asks all in it to stop. */
static void prepare_freezer(void)
{
	pid_t child = fork();

	check(child >= 0, "fork");
	if (child)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	write_to("b", "cgroup.procs", "0");
	for (;;) {
		struct timespec t = { 0, 500000 };

		write_to("a", "cgroup.freeze", "1");
		nanosleep(&t, NULL);
		write_to("a", "cgroup.freeze", "0");
		nanosleep(&t, NULL);
	}
}

/* A child with a lot of memory goes, over and over: whoever is on the way out comes first. */
static void exit_large(void)
{
	enum { SIZE = 4 << 20 };
	pid_t child = fork();

	check(child >= 0, "fork");
	if (child == 0) {
		mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
		_exit(0);
	}
	check(waitpid(child, NULL, 0) == child, "wait");
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

/* Stops a child as a debugger does. */
static void trace(void)
{
	static pid_t child;

	if (!child) {
		child = fork();
		check(child >= 0, "fork");
		if (child == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			for (;;)
				compute(SHORT);
		}
		check(!syscall(SYS_ptrace, 0x4206 /* PTRACE_SEIZE */, child, NULL, NULL), "seize");
	}
	check(!syscall(SYS_ptrace, 0x4207 /* PTRACE_INTERRUPT */, child, NULL, NULL), "interrupt");
	check(waitpid(child, NULL, __WALL) == child, "wait");
	check(!syscall(SYS_ptrace, 7 /* PTRACE_CONT */, child, NULL, NULL), "continue");
	compute(SHORT);
}

enum { PIECES = 64 };
static struct iovec pieces[PIECES];
static int long_file;

/* A child dies of a signal and leaves a core: the kernel looks at each page of what it has mapped, here for hours. */
static void dump_core(void)
{
	const struct rlimit any = { RLIM_INFINITY, RLIM_INFINITY };
	const struct timespec t = { 0, 10000000 };
	static pid_t child;

	if (child && waitpid(child, NULL, WNOHANG) == 0) {
		nanosleep(&t, NULL);
		return;
	}
	child = fork();
	check(child >= 0, "fork");
	if (child == 0) {
		char folder[] = "/tmp/coreXXXXXX";
		char *memory = mmap(NULL, 1ul << 46, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

		check(memory != MAP_FAILED && !setrlimit(RLIMIT_CORE, &any) && mkdtemp(folder) && !chdir(folder), "prepare a core");
		*memory = 1;
		abort();
	}
	for (int i = 0; i < 20; i++) /* until it does: beside others, later, it may not get that far */
		nanosleep(&t, NULL);
}

/* Reads long at a time, while timers stop and continue it: it stops once the call is over. */
static void prepare_long_reads(void)
{
	enum { PIECE = 2 << 20 };
	char *memory = mmap(NULL, PIECE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	long_file = memfd_create("hole", 0);
	check(long_file >= 0 && memory != MAP_FAILED && !ftruncate(long_file, (off_t)PIECES * PIECE), "a hole");
	for (int i = 0; i < PIECES; i++)
		pieces[i] = (struct iovec){ memory, PIECE };
	start_timer(SIGSTOP, NSEC / 100, NSEC / 10);
	start_timer(SIGCONT, NSEC / 11, NSEC / 10);
}

static void read_long(void)
{
	preadv(long_file, pieces, PIECES, 0);
}

/* Threads end with a list of locks that the kernel has to release, each in a page that has to be made first. */
enum { LOCKS = 2048, APART = 16 << 12 };
static char *locks;

static void prepare_locks(void)
{
	int fd = memfd_create("locks", 0);

	check(fd >= 0 && !ftruncate(fd, LOCKS * APART), "memory");
	locks = mmap(NULL, LOCKS * APART, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	check(locks != MAP_FAILED, "map");
	for (int i = 0; i < LOCKS; i++)
		*(char **)(locks + i * APART) = locks + (i + 1) % LOCKS * APART;
}

static void *leave_locks(void *unused)
{
	static __thread struct { char *first; long offset; void *pending; } list;

	list.first = locks;
	list.offset = 8;
	madvise(locks, LOCKS * APART, MADV_DONTNEED);
	check(!syscall(SYS_set_robust_list, &list, sizeof(list)), "robust list");
	return unused;
}

static void end_thread(void)
{
	pthread_t thread;

	check(!pthread_create(&thread, NULL, leave_locks, NULL) && !pthread_join(thread, NULL), "thread");
}

static const struct trick {
	const char *name;
	int processes;
	void (*prepare)(void), (*round)(void);
} tricks[] = {
	{ "spin", 4, NULL, spin },
	{ "vfork", 4, NULL, vfork_one },
	{ "vfork-sibling", 4, NULL, vfork_sibling },
	{ "filters", 4, prepare_filters, filtered_call },
	{ "stops", 32, NULL, stop },
	{ "freezer", 32, NULL, spin }, /* a 33rd freezes them: main() */
	{ "fight", 4, prepare_fight, fight_one },
	{ "rcu", 64, NULL, look_up },
	{ "processes", 4, NULL, move_process },
	{ "threads", 4, prepare_threads, move_thread },
	{ "cgroups", 4, NULL, make_and_remove },
	{ "names", 4, prepare_names, rename_self },
	{ "nice", 4, NULL, renice },
	{ "autogroup", 4, NULL, autogroup },
	{ "policy", 4, NULL, change_policy },
	{ "idle", 4, prepare_idle, spin },
	{ "deadline", 4, prepare_deadline, spin },
	{ "clamps", 4, NULL, clamp },
	{ "affinity", 4, NULL, change_affinity },
	{ "yield", 4, NULL, yield },
	{ "ping", 4, NULL, ping },
	{ "fork", 4, NULL, fork_one },
	{ "exit", 4, NULL, exit_large },
	{ "signals", 4, prepare_signals, spin },
	{ "membarrier", 4, NULL, expedite },
	{ "namespaces", 4, NULL, namespaces },
	{ "ring-poll", 4, prepare_ring, spin },
	{ "ring-workers", 2, prepare_workers, ask_workers },
	{ "timers", 4, prepare_timers, spin },
	{ "nap", 4, NULL, nap },
	{ "futex-pi", 4, prepare_inheriting, inherit },
	{ "ptrace", 4, NULL, trace },
	{ "core", 4, NULL, dump_core },
	{ "stop-read", 4, prepare_long_reads, read_long },
	{ "robust", 4, prepare_locks, end_thread },
	{ "packets", 4, prepare_packets, send_packets },
};

/* Root in a container: a cgroup namespace of its own, and the capabilities that runtimes leave. */
static void enter_container(void)
{
	const uint64_t keeps = 1 << CAP_CHOWN | 1 << CAP_DAC_OVERRIDE | 1 << CAP_FSETID | 1 << CAP_FOWNER | 1 << CAP_MKNOD |
			       1 << CAP_NET_RAW | 1 << CAP_SETGID | 1 << CAP_SETUID | 1u << CAP_SETFCAP | 1 << CAP_SETPCAP |
			       1 << CAP_NET_BIND_SERVICE | 1 << CAP_SYS_CHROOT | 1 << CAP_KILL | 1 << CAP_AUDIT_WRITE;
	struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct caps[2] = { { keeps, keeps, keeps }, { 0, 0, 0 } };

	check(!unshare(CLONE_NEWCGROUP), "cgroup namespace");
	for (int cap = 0; cap <= CAP_LAST_CAP; cap++)
		if (!(keeps >> cap & 1))
			prctl(PR_CAPBSET_DROP, cap);
	check(!syscall(SYS_capset, &head, caps), "capabilities");
}

static void do_it(const struct trick *t, int number, int said)
{
	srand48(number);
	if (t->prepare)
		t->prepare();
	t->round();
	check(write(said, refused ? "r" : "d", 1) == 1, "pipe");
	for (;;)
		t->round();
}

int main(int argc, char **argv)
{
	int said[2];
	char byte;

	errno = EINVAL;
	if (argc != 4)
		die("usage: reach TRICK CGROUP user|container");
	own = argv[2];
	if (!strcmp(argv[3], "container"))
		enter_container();
	check(!pipe(said), "pipe");
	for (size_t i = 0; i < sizeof(tricks) / sizeof(tricks[0]); i++) {
		const struct trick *t = &tricks[i];
		bool known = !strcmp(argv[1], t->name);

		if (!known)
			continue;
		bool direct = !strcmp(t->name, "vfork-sibling");

		for (int n = 0; n < t->processes; n++) {
			pid_t child = direct ? syscall(SYS_clone, CLONE_PARENT | SIGCHLD, NULL, NULL, NULL, NULL) : fork();

			check(child >= 0, "fork");
			if (child == 0) {
				if (t->round == vfork_one || t->round == vfork_sibling)
					check(write(said[1], "d", 1) == 1, "pipe"); /* it never comes back */
				do_it(t, n, said[1]);
			}
		}
		for (int n = 0; n < t->processes; n++) {
			check(read(said[0], &byte, 1) == 1, "a child");
			refused |= byte == 'r';
		}
		if (!strcmp(t->name, "freezer"))
			prepare_freezer();
		const char *word = refused ? "refused\n" : "\n";

		check(write(STDOUT_FILENO, word, strlen(word)) > 0, "stdout");
		for (;;)
			pause();
	}
	errno = EINVAL;
	die("no trick %s", argv[1]);
}
