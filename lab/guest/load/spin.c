/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spin SLOT CPUS: best-effort work without an end, on CPUs 0..CPUS-1, counted in units of
 * fixed size. It says "\n" once the first unit is done.
 */
#include "load.h"

#define UNIT 1000 /* iterations of compute() */

int main(int argc, char **argv)
{
	if (argc != 3)
		die("usage: spin SLOT CPUS");
	volatile uint64_t *units = &map_work()[atoi(argv[1]) % MAX_SPINNERS].units;

	pin(0, atoi(argv[2]) - 1);
	compute(UNIT);
	if (write(STDOUT_FILENO, "\n", 1) != 1)
		die("stdout");
	for (;;) {
		compute(UNIT);
		++*units;
	}
}
