// SPDX-License-Identifier: GPL-2.0
/* What /proc says of a thread. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader.h"

bool read_thread_stat(int tid, struct thread_stat *s)
{
	enum { STATE = 3, START = 22, CPU = 39 };
	char path[32], text[1024], *rest = NULL, *word;
	int field = STATE;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", tid);
	f = fopen(path, "re");
	if (!f)
		return false;
	/* The name, in brackets, may hold anything. */
	if (fgets(text, sizeof(text), f))
		rest = strrchr(text, ')');
	fclose(f);
	if (!rest)
		return false;
	for (word = strtok_r(rest + 1, " ", &rest); word; word = strtok_r(NULL, " ", &rest), field++) {
		if (field == START)
			s->start_ticks = strtoull(word, NULL, 10);
		if (field == CPU) {
			s->cpu = atoi(word);
			return true;
		}
	}
	return false;
}
