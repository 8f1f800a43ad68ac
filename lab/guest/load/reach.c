/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reach TRICK CGROUP USER: tries to get CPU time beyond its due, without an end. CGROUP is the folder of a cgroup that it
 * owns, with children a and b; it was started in a. USER: `user`, or `container`: root in a cgroup namespace of its own,
 * with the capabilities that a container has. Says "\n" once it does what it is to do, or "refused" where the kernel
 * does not let it: then it computes.
 */
#include <linux/capability.h>
#include <sys/wait.h>

#include "tricks_end.h"
#include "tricks_kernel.h"
#include "tricks_rank.h"

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
	{ "controllers", 5, prepare_controllers, turn_controllers },
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
	{ "terminals", 6, prepare_terminal, type },
	{ "sockets", 4, prepare_sockets, lose_sockets },
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
	int said[2], all_are_there[2];
	char byte;

	errno = EINVAL;
	if (argc != 4)
		die("usage: reach TRICK CGROUP user|container");
	own = argv[2];
	if (!strcmp(argv[3], "container"))
		enter_container();
	check(!pipe(said) && !pipe(all_are_there), "pipe");
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
				/* Those that try already would keep this process from forking the rest. */
				close(all_are_there[1]);
				check(read(all_are_there[0], &byte, 1) == 0, "pipe");
				if (t->round == vfork_one || t->round == vfork_sibling)
					check(write(said[1], "d", 1) == 1, "pipe"); /* it never comes back */
				do_it(t, n, said[1]);
			}
		}
		close(all_are_there[1]);
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
