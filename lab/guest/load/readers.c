/* SPDX-License-Identifier: Apache-2.0 */
/*
 * readers LOCK FOLDER CGROUP READERS BUSY TIMES: READERS processes, of the cgroup whose folder is CGROUP, read under a lock of
 * the kernel, over and over. BUSY more are in one long system call each, so that the cgroup has used up its limit. This process takes the lock to write so many TIMES, each 10 ms or
 * so, and prints how long that took.
 *
 * LOCK is one that any number have at once to read, and whose readers the kernel does not name:
 *
 * memory	of this process's address space: the readers read its command line, and it maps memory and gives it back
 * folder	of FOLDER: the readers list it, and this process makes a file there
 * cgroups	of all folders of cgroups: the readers look up names there, and this process makes a cgroup in CGROUP
 * rcu		none, but sections of RCU: the readers read of themselves, and this process waits until all sections have ended
 * files	of all locks of files: the readers read of them, which is to write, and this process locks a file and unlocks it
 *
 * It ends after MOST_SECONDS, however often it had the lock until then.
 */
#include "late.h"
#include <linux/membarrier.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define WARM_UP (NSEC / 2)

enum { MOST_SECONDS = 12, MAPPED = 64 << 10, NAMES = 50, LONG = 1 << 30 };

static char path[512];
static pid_t writer;

static void read_memory(void)
{
	char line[4096];
	int fd = open(path, O_RDONLY);

	if (fd < 0)
		exit(0); /* the writer is gone */
	(void)!read(fd, line, sizeof(line));
	close(fd);
}

static void write_memory(void)
{
	char *at = mmap(NULL, MAPPED, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		die("map");
	for (int i = 0; i < MAPPED; i += 4096)
		at[i] = 1;
	munmap(at, MAPPED);
}

static void prepare_memory(const char *folder, const char *cgroup)
{
	(void)folder;
	(void)cgroup;
	snprintf(path, sizeof(path), "/proc/%d/cmdline", writer);
}

static void read_folder(void)
{
	char names[8192];
	int fd = open(path, O_RDONLY | O_DIRECTORY);

	if (fd < 0)
		exit(0); /* the test is over */
	while (syscall(SYS_getdents64, fd, names, sizeof(names)) > 0)
		;
	close(fd);
}

static void write_folder(void)
{
	char name[600];
	int fd;

	snprintf(name, sizeof(name), "%s/new", path);
	fd = open(name, O_CREAT | O_WRONLY, 0600);
	if (fd < 0 || close(fd) || unlink(name))
		die("%s", name);
}

static void prepare_folder(const char *folder, const char *cgroup)
{
	char name[600];

	(void)cgroup;
	snprintf(path, sizeof(path), "%s", folder);
	for (int i = 0; i < NAMES; i++) {
		snprintf(name, sizeof(name), "%s/%d", path, i);
		close(open(name, O_CREAT | O_WRONLY, 0600));
	}
}

static void read_cgroups(void)
{
	static unsigned next;
	char name[600];
	struct stat s;

	/* Of a name that it has looked up before the kernel knows. */
	snprintf(name, sizeof(name), "%s/none-%d-%u", path, getpid(), next++);
	stat(name, &s);
}

static void write_cgroups(void)
{
	char name[600];

	snprintf(name, sizeof(name), "%s/new", path);
	if (mkdir(name, 0755) || rmdir(name))
		die("%s", name);
}

static void prepare_cgroups(const char *folder, const char *cgroup)
{
	(void)folder;
	snprintf(path, sizeof(path), "%s", cgroup);
}

static void read_self(void)
{
	char line[4096];
	int fd = open("/proc/self/status", O_RDONLY);

	if (fd < 0 || read(fd, line, sizeof(line)) < 0 || close(fd))
		die("/proc/self/status");
}

static void wait_for_sections(void)
{
	if (syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0))
		die("membarrier");
}

static void read_file_locks(void)
{
	char lines[4096];
	int fd = open("/proc/locks", O_RDONLY);

	if (fd < 0 || read(fd, lines, sizeof(lines)) < 0 || close(fd))
		die("/proc/locks");
}

static void write_file_locks(void)
{
	static int fd = -1;

	if (fd < 0)
		fd = open(path, O_CREAT | O_WRONLY, 0600);
	if (fd < 0 || flock(fd, LOCK_EX) || flock(fd, LOCK_UN))
		die("%s", path);
}

static void prepare_file_locks(const char *folder, const char *cgroup)
{
	(void)cgroup;
	snprintf(path, sizeof(path), "%s/locked", folder);
}

static const struct lock {
	const char *name;
	void (*prepare)(const char *folder, const char *cgroup);
	void (*read)(void), (*write)(void);
} locks[] = {
	{ "memory", prepare_memory, read_memory, write_memory },
	{ "folder", prepare_folder, read_folder, write_folder },
	{ "cgroups", prepare_cgroups, read_cgroups, write_cgroups },
	{ "rcu", prepare_cgroups, read_self, wait_for_sections },
	{ "files", prepare_file_locks, read_file_locks, write_file_locks },
};

static void be_busy(void)
{
	static int fd = -1;
	static char *memory;

	if (fd < 0) {
		fd = open("/dev/zero", O_RDONLY);
		memory = mmap(NULL, LONG, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	}
	if (fd < 0 || memory == MAP_FAILED || read(fd, memory, LONG) < 0 || madvise(memory, LONG, MADV_DONTNEED))
		die("zeroes");
}

/* They begin in this process's cgroup, and are anywhere in what they do when they are moved. */
static pid_t *start(const struct lock *l, const char *cgroup, int readers, int all)
{
	char procs[600], line[16];
	pid_t *pids = calloc(all, sizeof(*pids));
	int fd;

	snprintf(procs, sizeof(procs), "%s/cgroup.procs", cgroup);
	fd = open(procs, O_WRONLY);
	if (fd < 0 || !pids)
		die("%s", procs);
	for (int i = 0; i < all; i++) {
		pids[i] = fork();
		if (pids[i] < 0)
			die("fork");
		if (pids[i] > 0)
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			(i < readers ? l->read : be_busy)();
	}
	sleep_until(now_ns() + WARM_UP);
	for (int i = 0; i < all; i++)
		if (write(fd, line, snprintf(line, sizeof(line), "%d", pids[i])) < 0)
			die("%s", procs);
	sleep_until(now_ns() + WARM_UP);
	return pids;
}

/* Their cgroup is to be removed next. */
static void end(const pid_t *pids, int all)
{
	for (int i = 0; i < all; i++)
		kill(pids[i], SIGKILL);
	for (int i = 0; i < all; i++)
		waitpid(pids[i], NULL, 0);
}

static void ask(const struct lock *l, int times)
{
	uint64_t *took = calloc(times + 1, sizeof(*took)), end = now_ns() + MOST_SECONDS * NSEC;
	int i = 0;

	if (!took)
		die("memory");
	while (i < times && now_ns() < end) {
		uint64_t until = now_ns() + NSEC / 100 * (0.5 + drand48());

		sleep_until(until);
		l->write();
		took[i++] = now_ns() - until;
	}
	print_times(took, i);
}

int main(int argc, char **argv)
{
	int readers, all;
	pid_t *pids;

	errno = EINVAL;
	if (argc != 7)
		die("usage: readers LOCK FOLDER CGROUP READERS BUSY TIMES");
	readers = atoi(argv[4]);
	all = readers + atoi(argv[5]);
	writer = getpid();
	for (unsigned i = 0; i < sizeof(locks) / sizeof(*locks); i++) {
		if (strcmp(locks[i].name, argv[1]))
			continue;
		locks[i].prepare(argv[2], argv[3]);
		pids = start(&locks[i], argv[3], readers, all);
		ask(&locks[i], atoi(argv[6]));
		end(pids, all);
		return 0;
	}
	die("no lock %s", argv[1]);
}
