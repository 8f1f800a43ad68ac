/* SPDX-License-Identifier: Apache-2.0 */
/* spin SLOT CPUS: best-effort work that only computes (background.h). */
#include "background.h"

#define UNIT 1000 /* iterations of compute() */

static void spin(void)
{
	compute(UNIT);
}

int main(int argc, char **argv)
{
	work(argc, argv, spin);
}
