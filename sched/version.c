// SPDX-License-Identifier: GPL-2.0
/* Which scx_temper this is. `temper version` says it in the same words. */
#include <stdio.h>

#include "loader.h"
#include "version.h"

const unsigned char object_sha256[32] =
#include "temper.sha256.h"
	;

enum temper_status print_version(void)
{
	printf("version  %s\ncommit   %s\nobject   ", TEMPER_VERSION, *TEMPER_COMMIT ? TEMPER_COMMIT : "unknown");
	for (unsigned i = 0; i < sizeof(object_sha256); i++)
		printf("%02x", object_sha256[i]);
	printf("\nabi      %d\n", TEMPER_ABI);
	return end_output();
}
