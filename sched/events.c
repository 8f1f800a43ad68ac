// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "loader.h"

static void print_json_string(const char *text)
{
	putchar('"');
	for (; *text; text++) {
		unsigned char c = *text;

		if (c == '"' || c == '\\')
			printf("\\%c", c);
		else if (c < 0x20)
			printf("\\u%04x", c);
		else
			putchar(c);
	}
	putchar('"');
}

enum temper_status fail(enum temper_status status, const char *format, ...)
{
	char text[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	fprintf(stderr, "scx_temper: %s\n", text);
	if (options.json) {
		printf("{\"event\":\"error\",\"status\":%d,\"message\":", status);
		print_json_string(text);
		puts("}");
		fflush(stdout);
	}
	return status;
}

/* What was asked for is not said if it is lost: in a pipe that nobody reads, or on a full disk. */
enum temper_status end_output(void)
{
	return fflush(stdout) || ferror(stdout) ? fail(TEMPER_FAILED, "cannot write: %s", strerror(errno)) : TEMPER_OK;
}

void note(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fputs("scx_temper: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
}

void say_attached(bool adopted)
{
	note(adopted ? "adopted the scheduler that was attached" : "attached");
	if (options.json) {
		printf("{\"event\":\"attached\",\"adopted\":%s,\"pid\":%d}\n", adopted ? "true" : "false", getpid());
		fflush(stdout);
	}
}

void say_exited(const struct temper_exit_info *info)
{
	note("the scheduler has left: %s%s%s (kind %d, code %#llx)", info->reason, info->msg[0] ? ": " : "", info->msg,
	     info->kind, info->exit_code);
	if (options.json) {
		printf("{\"event\":\"exited\",\"kind\":%d,\"exit_code\":%lld,\"reason\":", info->kind, info->exit_code);
		print_json_string(info->reason);
		fputs(",\"message\":", stdout);
		print_json_string(info->msg);
		puts("}");
		fflush(stdout);
	}
}
