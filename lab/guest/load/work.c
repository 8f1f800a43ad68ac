/* SPDX-License-Identifier: Apache-2.0 */
/*
 * work SLOT CPUS COUNT TEXT PROGRAM [ARGUMENT...]: best-effort work that a user names, on CPUs
 * 0..CPUS-1. PROGRAM runs over and over. What it has done is counted in the work file's slot SLOT:
 *
 *   COUNT    a unit is
 *   runs     a run that has ended
 *   lines    a line that it printed, on standard output or standard error
 *   counter  one that it counts itself: TEXT is followed by how many it has done in this run
 *
 * It says "\n" once PROGRAM has started. A run that fails ends it, with what PROGRAM said last.
 */
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "load.h"

#define LINE 512

static volatile uint64_t *units;
static const char *counter; /* NULL: none */
static bool count_lines;
static uint64_t before; /* units of earlier runs */
static char last[LINE + 1];

/* Takes the last one in a line: progress may be overwritten in place. */
static void read_counter(const char *line)
{
	const char *found = NULL;

	for (const char *at = line; (at = strstr(at, counter)); at += strlen(counter))
		found = at + strlen(counter);
	if (found)
		*units = before + strtoull(found, NULL, 10);
}

static void take_line(const char *line)
{
	strcpy(last, line);
	if (count_lines)
		++*units;
	if (counter)
		read_counter(line);
}

static void read_lines(int fd)
{
	static char text[65536], line[LINE + 1];
	size_t have = 0;
	ssize_t n;

	while ((n = read(fd, text, sizeof(text))) > 0) {
		for (ssize_t i = 0; i < n; i++) {
			bool ends = text[i] == '\n' || text[i] == '\r';

			if (!ends && have < LINE)
				line[have++] = text[i];
			line[have] = 0;
			if (ends && have)
				take_line(line);
			if (ends)
				have = 0;
		}
	}
	if (n < 0)
		die("read what the program prints");
	if (have)
		take_line(line);
}

static pid_t start(char **words, int out)
{
	int failed[2], null, error = 0;

	if (pipe2(failed, O_CLOEXEC))
		die("pipe");
	pid_t pid = fork();

	if (pid < 0)
		die("fork");
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		null = open("/dev/null", O_RDONLY);
		if (null >= 0 && dup2(null, 0) == 0 && dup2(out, 1) == 1 && dup2(out, 2) == 2)
			execv(words[0], words);
		error = errno;
		_exit(write(failed[1], &error, sizeof(error)) != sizeof(error));
	}
	close(failed[1]);
	if (read(failed[0], &error, sizeof(error)) == sizeof(error)) {
		errno = error;
		die("start %s", words[0]);
	}
	close(failed[0]);
	return pid;
}

static void run(char **words)
{
	static bool told;
	int out[2], status;

	if (pipe2(out, O_CLOEXEC))
		die("pipe");
	pid_t pid = start(words, out[1]);

	close(out[1]);
	if (!told && write(STDOUT_FILENO, "\n", 1) != 1)
		die("stdout");
	told = true;
	read_lines(out[0]);
	close(out[0]);
	if (waitpid(pid, &status, 0) != pid)
		die("wait");
	if (!WIFEXITED(status) || WEXITSTATUS(status)) {
		fprintf(stderr, "%s %d (%s)\n", WIFEXITED(status) ? "exit status" : "signal",
			WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status), *last ? last : "it printed nothing");
		exit(1);
	}
}

int main(int argc, char **argv)
{
	if (argc < 6) {
		errno = EINVAL;
		die("usage: work SLOT CPUS COUNT TEXT PROGRAM [ARGUMENT...]");
	}
	units = &map_work()[atoi(argv[1]) % MAX_SPINNERS].units;
	count_lines = !strcmp(argv[3], "lines");
	counter = strcmp(argv[3], "counter") ? NULL : argv[4];
	pin(0, atoi(argv[2]) - 1);
	adopt_policy();
	for (;;) {
		before = *units;
		run(argv + 5);
		if (!count_lines && !counter)
			++*units;
	}
}
