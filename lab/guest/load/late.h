/* SPDX-License-Identifier: Apache-2.0 */
/* How times are told to the functional tests. */
#ifndef TEMPER_LATE_H
#define TEMPER_LATE_H

#include "load.h"

static inline int ascending(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Sorts times and prints the median, the 99th and 99.9th percentiles and the longest, in ns. */
static inline void print_times(uint64_t *times, int n)
{
	qsort(times, n, sizeof(*times), ascending);
	printf("%lu %lu %lu %lu\n", times[n / 2], times[n - 1 - n / 100], times[n - 1 - n / 1000], times[n - 1]);
}

#endif
