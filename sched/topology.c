// SPDX-License-Identifier: GPL-2.0
/* Which CPUs are threads of one core, and which are set aside. */
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

/* The threads of a CPU's core. One that is offline has no file, and is alone. */
static enum temper_status siblings_of(unsigned cpu, unsigned long long *words)
{
	char path[128], text[1024];
	FILE *file;

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u/topology/thread_siblings_list", cpu);
	file = fopen(path, "r");
	if (!file && errno == ENOENT) {
		memset(words, 0, TEMPER_MAX_CPUS / 8);
		words[WORD(cpu)] = BIT(cpu);
		return TEMPER_OK;
	}
	if (!file || !fgets(text, sizeof(text), file) || !parse_cpus(text, words)) {
		if (file)
			fclose(file);
		return fail(TEMPER_FAILED, "cannot read %s, and so not tell which CPUs share a core", path);
	}
	fclose(file);
	return TEMPER_OK;
}

static unsigned next_in(const unsigned long long *words, unsigned cpu)
{
	do
		cpu = (cpu + 1) % TEMPER_MAX_CPUS;
	while (!(words[WORD(cpu)] & BIT(cpu)));
	return cpu;
}

enum temper_status read_topology(struct temper_topology *topology, unsigned nr_cpus, bool *smt)
{
	unsigned long long core[TEMPER_MAX_CPUS / 64];

	*smt = false;
	memcpy(topology->fence, options.fence, sizeof(options.fence));
	for (unsigned cpu = 0; cpu < TEMPER_MAX_CPUS; cpu++) {
		bool fenced = options.fence[WORD(cpu)] & BIT(cpu);
		enum temper_status status;
		unsigned next;

		topology->next_sibling[cpu] = cpu;
		if (cpu >= nr_cpus) {
			if (fenced)
				return fail(TEMPER_USAGE, "CPU %u cannot be fenced: there are %u", cpu, nr_cpus);
			continue;
		}
		status = siblings_of(cpu, core);
		if (status)
			return status;
		next = next_in(core, cpu);
		topology->next_sibling[cpu] = next;
		*smt |= next != cpu;
		if (fenced && !(options.fence[WORD(next)] & BIT(next)))
			return fail(TEMPER_USAGE, "a fence has whole cores: CPU %u is on the core of CPU %u, and not in it", next, cpu);
	}
	return TEMPER_OK;
}
