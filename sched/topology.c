// SPDX-License-Identifier: GPL-2.0
/* Which CPUs are threads of one core, which share a cache, and which are set aside. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader.h"

#define WORD(cpu) ((cpu) / 64)
#define BIT(cpu) (1ull << ((cpu) % 64))

/* Reads a list such as 0-3,8 into words of 64 CPUs each; false if it is none. */
bool parse_cpus(const char *text, unsigned long long *words)
{
	memset(words, 0, TEMPER_MAX_CPUS / 8);
	do {
		char *end;
		unsigned long first, last;

		if (*text < '0' || *text > '9')
			return false;
		first = last = strtoul(text, &end, 10);
		if (*end == '-' && end[1] >= '0' && end[1] <= '9')
			last = strtoul(end + 1, &end, 10);
		if (last < first || last >= TEMPER_MAX_CPUS)
			return false;
		for (unsigned long cpu = first; cpu <= last; cpu++)
			words[WORD(cpu)] |= BIT(cpu);
		text = end;
	} while (*text++ == ',');
	text--;
	return *text == '\0' || *text == '\n';
}

/* Reads one of a CPU's files in /sys, a list of CPUs. False if there is none, or it is no list. */
static bool read_cpus(unsigned cpu, const char *name, unsigned long long *words)
{
	char path[128], text[1024];
	FILE *file;
	bool is_list;

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u/%s", cpu, name);
	file = fopen(path, "r");
	if (!file)
		return false;
	is_list = fgets(text, sizeof(text), file) && parse_cpus(text, words);
	fclose(file);
	if (!is_list)
		errno = EINVAL;
	return is_list;
}

/* Numbers of CPUs may have holes, so that to count CPUs is not enough. */
enum temper_status read_cpu_ids(unsigned *nr_cpus)
{
	static const char path[] = "/sys/devices/system/cpu/possible";
	unsigned long long words[TEMPER_MAX_CPUS / 64];
	char text[1024];
	FILE *file = fopen(path, "r");
	bool is_read = file && fgets(text, sizeof(text), file);

	if (file)
		fclose(file);
	if (!is_read)
		return fail(TEMPER_FAILED, "cannot read %s: %s", path, strerror(errno));
	text[strcspn(text, "\n")] = '\0';
	if (!parse_cpus(text, words))
		return fail(TEMPER_LOAD_FAILED, "the kernel may have CPUs %s, and at most %d are supported; boot with nr_cpus=%d", text,
			    TEMPER_MAX_CPUS, TEMPER_MAX_CPUS);
	for (unsigned cpu = 0; cpu < TEMPER_MAX_CPUS; cpu++)
		if (words[WORD(cpu)] & BIT(cpu))
			*nr_cpus = cpu + 1;
	return TEMPER_OK;
}

static void alone(unsigned cpu, unsigned long long *words)
{
	memset(words, 0, TEMPER_MAX_CPUS / 8);
	words[WORD(cpu)] = BIT(cpu);
}

/* The threads of a CPU's core. One that is offline has no file, and is alone. */
static enum temper_status siblings_of(unsigned cpu, unsigned long long *words)
{
	if (read_cpus(cpu, "topology/thread_siblings_list", words))
		return TEMPER_OK;
	if (errno != ENOENT)
		return fail(TEMPER_FAILED, "cannot read CPU %u's thread_siblings_list, and so not tell which CPUs share a core: %s", cpu,
			    strerror(errno));
	alone(cpu, words);
	return TEMPER_OK;
}

static bool read_or_say(unsigned cpu, const char *name, unsigned long long *words)
{
	if (read_cpus(cpu, name, words))
		return true;
	if (errno != ENOENT)
		note("cannot read CPU %u's %s: %s; placement does without it", cpu, name, strerror(errno));
	return false;
}

/*
 * The CPUs that share a CPU's last cache. A virtual machine may hide its caches: then those of the package do. One
 * that is offline is alone. Whatever cannot be read is said, and passed over: it costs a task its nearest cache, no more.
 */
static void sharers_of(unsigned cpu, unsigned long long *words)
{
	char name[64];

	for (int index = 9; index >= 0; index--) {
		snprintf(name, sizeof(name), "cache/index%d/shared_cpu_list", index);
		if (read_or_say(cpu, name, words))
			return;
	}
	if (!read_or_say(cpu, "topology/package_cpus_list", words))
		alone(cpu, words);
}

/* Is this CPU the first of those that share its last cache? Counted so, each cache counts once. */
static bool first_sharer(unsigned cpu, const unsigned long long *words)
{
	for (unsigned w = 0; w < WORD(cpu); w++)
		if (words[w])
			return false;
	return !(words[WORD(cpu)] & (BIT(cpu) - 1));
}

static unsigned next_in(const unsigned long long *words, unsigned cpu)
{
	do
		cpu = (cpu + 1) % TEMPER_MAX_CPUS;
	while (!(words[WORD(cpu)] & BIT(cpu)));
	return cpu;
}

enum temper_status read_topology(struct temper_topology *topology, unsigned nr_cpus, bool *smt, unsigned *llcs)
{
	unsigned long long core[TEMPER_MAX_CPUS / 64];
	bool all_fenced = true;

	*smt = false;
	*llcs = 0;
	memcpy(topology->fence, options.fence, sizeof(options.fence));
	for (unsigned cpu = 0; cpu < TEMPER_MAX_CPUS; cpu++) {
		bool fenced = options.fence[WORD(cpu)] & BIT(cpu);
		enum temper_status status;
		unsigned next;

		topology->next_sibling[cpu] = cpu;
		if (cpu >= nr_cpus) {
			if (fenced)
				return fail(TEMPER_USAGE, "CPU %u cannot be fenced: there are CPUs 0 to %u", cpu, nr_cpus - 1);
			continue;
		}
		status = siblings_of(cpu, core);
		if (status)
			return status;
		all_fenced &= fenced;
		next = next_in(core, cpu);
		topology->next_sibling[cpu] = next;
		*smt |= next != cpu;
		sharers_of(cpu, topology->llc[cpu]);
		*llcs += first_sharer(cpu, topology->llc[cpu]);
		if (fenced && !(options.fence[WORD(next)] & BIT(next)))
			return fail(TEMPER_USAGE, "a fence has whole cores: CPU %u is on the core of CPU %u, and not in it", next, cpu);
	}
	if (all_fenced && options.loan == LOAN_NEVER)
		return fail(TEMPER_USAGE, "the fence has every CPU, and by 'never' background may run on none of them: leave a core out of the "
					  "fence, or lend it by 'gaps' or 'idle'");
	return TEMPER_OK;
}
