/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quantum US: give every virtual CPU one turn of equal length in each US microseconds.
 *
 * Under -icount the emulator starts a round of its CPUs by sharing out the time to its
 * next timer: each CPU's turn is that time over the number of CPUs. So some timer must
 * always be near, or turns last up to a millisecond and show as wake-up latency. But no
 * such timer may expire, nor may a nearer one be set: either ends all turns and makes
 * the emulator share out anew what is left, CPU by CPU, less each time, from wherever
 * the round stood. Some CPUs then get up to three times what others get, for ever.
 *
 * So one CPU more than the kernel knows, the last of each round, is the conductor. At
 * its turn it moves the nearer of two HPET comparators behind the farther one, which
 * thereby becomes the next timer: moving a timer away ends no turn. Then it passes its
 * turn on (PAUSE). With the step S and N other CPUs, a round lasts S / (2 + 1/N).
 *
 * Needs hpet=on and hpet=disable (an HPET that the kernel leaves alone), nr_cpus=N of
 * N + 1 CPUs, and iomem=relaxed.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096
#define CODE 0x8000 /* a page of the first megabyte, which the kernel does not use */

#define LAPIC 0xfee00000
#define ICR_LOW (0x300 / 4)
#define ICR_HIGH (0x310 / 4)
#define INIT 0x4500
#define STARTUP 0x4600

#define HPET 0xfed00000
#define HPET_CONFIG (0x010 / 4)
#define HPET_ENABLE 1
#define HPET_TIMER_CONFIG(n) ((0x100 + 0x20 * (n)) / 4)
#define HPET_32BIT (1 << 8) /* and neither periodic nor interrupting */
#define HPET_TICKS_PER_US 100

/* What the conductor runs, at CODE: from real mode to flat 32-bit mode, then turn after turn. */
extern const char conductor[], conductor_step[], conductor_rounds[], conductor_end[];
__asm__(".pushsection .rodata\n"
	"	.code16\n"
	"conductor:\n"
	"	cli\n"
	"	xorw	%ax, %ax\n"
	"	movw	%ax, %ds\n"
	"	lgdtl	0x8000 + (gdt_pointer - conductor)\n"
	"	movl	%cr0, %eax\n"
	"	orb	$1, %al\n"
	"	movl	%eax, %cr0\n"
	"	ljmpl	$8, $0x8000 + (flat - conductor)\n"
	"	.code32\n"
	"flat:	movw	$16, %ax\n"
	"	movw	%ax, %ds\n"
	"	movl	$0xfed00108, %esi\n"			/* comparator 0; 0x20 further: 1 */
	"	movl	0x8000 + (conductor_step - conductor), %ebx\n"
	"turn:	movl	0xfed000f0, %eax\n"			/* the counter */
	"	addl	%ebx, %eax\n"
	"	movl	%eax, (%esi)\n"
	"	xorl	$0x20, %esi\n"
	"	incl	0x8000 + (conductor_rounds - conductor)\n"
	"	pause\n"
	"	jmp	turn\n"
	"	.balign	8\n"
	"gdt:	.quad	0, 0x00cf9b000000ffff, 0x00cf93000000ffff\n"
	"gdt_pointer:\n"
	"	.word	23\n"
	"	.long	0x8000 + (gdt - conductor)\n"
	"	.balign	4\n"
	"conductor_step:\n"
	"	.long	0\n"
	"conductor_rounds:\n"
	"	.long	0\n"
	"conductor_end:\n"
	"	.code64\n"
	"	.popsection\n");

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static volatile uint32_t *map(off_t page, int flags)
{
	int fd = open("/dev/mem", O_RDWR | flags);
	void *at;

	if (fd < 0)
		die("/dev/mem");
	at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, page);
	if (at == MAP_FAILED)
		die("mmap of /dev/mem");
	close(fd);
	return at;
}

/* The conductor's APIC is the one after those of the kernel's CPUs. */
static void start_conductor(int apic)
{
	volatile uint32_t *lapic = map(LAPIC, O_SYNC);

	lapic[ICR_HIGH] = apic << 24;
	lapic[ICR_LOW] = INIT;
	usleep(1000);
	lapic[ICR_HIGH] = apic << 24;
	lapic[ICR_LOW] = STARTUP | CODE / PAGE;
	usleep(1000);
}

int main(int argc, char **argv)
{
	int us = argc == 2 ? atoi(argv[1]) : 0, cpus = sysconf(_SC_NPROCESSORS_CONF);

	if (us < 1 || us > 1000000) {
		fprintf(stderr, "usage: quantum MICROSECONDS (1 to 1000000)\n");
		return 2;
	}
	volatile uint32_t *hpet = map(HPET, O_SYNC), *code = map(CODE, 0);
	volatile uint32_t *step = code + (conductor_step - conductor) / 4;
	volatile uint32_t *rounds = code + (conductor_rounds - conductor) / 4;

	hpet[HPET_CONFIG] = 0;
	for (int i = 0; i < 2; i++)
		hpet[HPET_TIMER_CONFIG(i)] = HPET_32BIT;
	hpet[HPET_CONFIG] = HPET_ENABLE;
	memcpy((void *)code, conductor, conductor_end - conductor);
	*step = us * HPET_TICKS_PER_US * (2 + 1.0 / cpus);
	start_conductor(cpus);
	/* Its first turn comes when those of the others end, which nobody keeps short yet. */
	for (int ms = 0; !*rounds && ms < 1000; ms++)
		usleep(1000);
	if (!*rounds) {
		fprintf(stderr, "quantum: CPU %d, the conductor, does not run\n", cpus);
		return 1;
	}
	return 0;
}
