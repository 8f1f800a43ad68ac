// SPDX-License-Identifier: GPL-2.0
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader.h"

struct options options = {
	.pin_dir = "/sys/fs/bpf/temper",
	.heartbeat_timeout_s = 10,
	.system_share_pct = 20,
};

static const char help[] =
	"scx_temper: a scheduler that keeps latency-critical and background work apart\n"
	"\n"
	"usage: scx_temper [OPTION]...\n"
	"\n"
	"  --tier TIER=CGROUP        put a cgroup, and all below it, into a tier: system, critical,\n"
	"                            standard or background; repeatable. What nobody maps is standard,\n"
	"                            but for system.slice, init.scope and kernel threads that are not\n"
	"                            nice: system.\n"
	"  --pin DIR                 where to pin the scheduler and its maps (default /sys/fs/bpf/temper)\n"
	"  --no-pin                  pin nothing: the scheduler leaves together with this process\n"
	"  --heartbeat-timeout SEC   a scheduler whose loader is gone leaves after this long (default 10; 0: never)\n"
	"  --system-share PCT        share of the node that the system tier has for sure (default 20)\n"
	"  --reservation CPUS        critical comes first up to so many CPUs, as in 2.5, and beyond that shares with\n"
	"                            standard by weight; 0: always (default: it comes first however much it uses).\n"
	"                            'temper agent' changes the number while the scheduler is attached\n"
	"  --fence CPUS              set whole cores aside for critical, as in 2-3\n"
	"  --loans WHEN              when background may run in the fence: gaps (at any moment, given back by an\n"
	"                            interrupt; default), idle (while no critical task is runnable), never\n"
	"  --smt MODE                share (default), or exclusive: no background beside a thread of the same core\n"
	"                            that runs critical work\n"
	"  --check                   say whether this kernel and node allow these options, and start nothing; whether\n"
	"                            another scheduler is attached is not looked at\n"
	"  --detach                  detach a scheduler whose scx_temper is gone, remove its pins, and leave\n"
	"  --limits MODE             what becomes of a task whose cgroup has used up its cpu.max: paced (it waits for a\n"
	"                            few milliseconds, since quota comes in evenly; default), gap (it may use what\n"
	"                            nobody wants), freeze (it waits for the next period, as under the stock kernel),\n"
	"                            ignore (nothing: limits are NOT kept)\n"
	"  --read-limits             read limits out of the kernel's memory ten times a second, as is done before 6.17,\n"
	"                            also where the kernel tells of them\n"
	"  --json                    events as JSON lines on stdout\n"
	"  --verbose                 show what libbpf and the verifier say\n"
	"  --version, --help\n"
	"\n"
	"Signals: SIGTERM, SIGINT: detach and leave. SIGUSR1: leave, the scheduler stays attached for the\n"
	"heartbeat timeout; a scx_temper started meanwhile adopts it.\n"
	"\n"
	"Example: scx_temper --tier critical=/sys/fs/cgroup/web.slice --tier background=/sys/fs/cgroup/batch.slice\n";

static const char *const tier_names[NR_TIERS] = { "system", "critical", "standard", "background" };

static void usage(const char *what, const char *value)
{
	exit(fail(TEMPER_USAGE, "%s '%s'; see scx_temper --help", what, value));
}

static void add_mapping(char *text)
{
	char *path = strchr(text, '=');

	if (!path)
		usage("--tier takes TIER=CGROUP, not", text);
	if (options.nr_mapped == MAX_MAPPED)
		usage("too many --tier; give the rest to 'temper agent':", text);
	*path++ = '\0';
	for (int t = 0; t < NR_TIERS; t++) {
		if (!strcmp(text, tier_names[t])) {
			options.mapped[options.nr_mapped++] = (struct mapping){ t, path };
			return;
		}
	}
	usage("no such tier:", text);
}

static const char *const loan_names[] = { "gaps", "idle", "never" }, *const smt_names[] = { "share", "exclusive" },
		  *const limits_names[] = { "paced", "gap", "freeze", "ignore" };
enum { NR_LOANS = 3, NR_SMT = 2, NR_LIMITS = 4 };

static unsigned one_of(const char *const *names, unsigned count, const char *what, const char *text)
{
	for (unsigned i = 0; i < count; i++)
		if (!strcmp(text, names[i]))
			return i;
	usage(what, text);
	return 0;
}

static unsigned number(const char *text, unsigned most)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	char what[40];

	snprintf(what, sizeof(what), "not a number from 0 to %u:", most);
	if (*text == '\0' || *text == '-' || *end || n > most)
		usage(what, text);
	return n;
}

static unsigned millicpus(const char *text)
{
	char *end;
	double cpus = strtod(text, &end);

	if (end == text || *end || !(cpus == 0 || (cpus >= 0.001 && cpus <= TEMPER_MAX_CPUS)))
		usage("not a number of CPUs:", text);
	return cpus * 1000 + 0.5;
}

void parse_options(int argc, char **argv)
{
	enum { TIER = 1, PIN, NO_PIN, HEARTBEAT, SHARE, RESERVATION, FENCE, LOANS, SMT, LIMITS, READ_LIMITS, DETACH, CHECK, JSON, VERBOSE, VERSION, HELP };
	static const struct option long_options[] = {
		{ "tier", required_argument, NULL, TIER },
		{ "pin", required_argument, NULL, PIN },
		{ "no-pin", no_argument, NULL, NO_PIN },
		{ "heartbeat-timeout", required_argument, NULL, HEARTBEAT },
		{ "system-share", required_argument, NULL, SHARE },
		{ "reservation", required_argument, NULL, RESERVATION },
		{ "fence", required_argument, NULL, FENCE },
		{ "loans", required_argument, NULL, LOANS },
		{ "smt", required_argument, NULL, SMT },
		{ "check", no_argument, NULL, CHECK },
		{ "detach", no_argument, NULL, DETACH },
		{ "limits", required_argument, NULL, LIMITS },
		{ "read-limits", no_argument, NULL, READ_LIMITS },
		{ "json", no_argument, NULL, JSON },
		{ "verbose", no_argument, NULL, VERBOSE },
		{ "version", no_argument, NULL, VERSION },
		{ "help", no_argument, NULL, HELP },
		{},
	};
	int option;

	opterr = 0;
	while ((option = getopt_long(argc, argv, ":", long_options, NULL)) != -1) {
		switch (option) {
		case TIER:
			add_mapping(optarg);
			break;
		case PIN:
			options.pin_dir = optarg;
			break;
		case NO_PIN:
			options.pin_dir = NULL;
			break;
		case HEARTBEAT:
			options.heartbeat_timeout_s = number(optarg, 86400);
			break;
		case SHARE:
			options.system_share_pct = number(optarg, 100);
			break;
		case RESERVATION:
			options.reservation = true;
			options.reservation_mcpu = millicpus(optarg);
			break;
		case FENCE:
			if (!parse_cpus(optarg, options.fence))
				usage("not a list of CPUs:", optarg);
			break;
		case LOANS:
			options.loan = one_of(loan_names, NR_LOANS, "no such way to lend:", optarg);
			break;
		case SMT:
			options.smt_exclusive = one_of(smt_names, NR_SMT, "no such mode:", optarg);
			break;
		case DETACH:
			options.detach = true;
			break;
		case CHECK:
			options.check = true;
			break;
		case LIMITS:
			options.limits = one_of(limits_names, NR_LIMITS, "no such mode of limits:", optarg);
			break;
		case READ_LIMITS:
			options.read_limits = true;
			break;
		case JSON:
			options.json = true;
			break;
		case VERBOSE:
			options.verbose = true;
			break;
		case VERSION:
			exit(print_version());
		case HELP:
			fputs(help, stdout);
			exit(end_output());
		case ':':
			usage("no value for", argv[optind - 1]);
			break;
		default:
			usage("no such option, or one that takes no value:", argv[optind - 1]);
		}
	}
	if (optind < argc)
		usage("takes no arguments, but got", argv[optind]);
}
