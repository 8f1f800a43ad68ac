/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quantum US: bound the turn that the emulator gives each virtual CPU.
 *
 * Under -icount a turn lasts until the next timer deadline, up to a millisecond,
 * and shows as wake-up latency. A periodic PIT gives it a deadline every US
 * microseconds. Its interrupt would cost an application CPU a fifth of its time,
 * so pin 2 of the I/O APIC is masked first: the deadline stays, the interrupt
 * does not arrive. Needs hpet=off (an HPET silences the PIT) and iomem=relaxed.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/io.h>
#include <sys/mman.h>

#define IOAPIC 0xFEC00000
#define PIT_PIN 2
#define PIT_HZ 1193182.0
#define MASKED (1u << 16)

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void mask_pit_pin(void)
{
	int fd = open("/dev/mem", O_RDWR | O_SYNC);
	volatile uint32_t *apic;

	if (fd < 0)
		die("/dev/mem");
	apic = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, IOAPIC);
	if (apic == MAP_FAILED)
		die("mmap of the I/O APIC");
	apic[0] = 0x10 + 2 * PIT_PIN; /* select the low half of the pin's redirection entry */
	apic[4] |= MASKED;
}

int main(int argc, char **argv)
{
	unsigned divisor;

	if (argc != 2 || (divisor = atoi(argv[1]) * PIT_HZ / 1e6 + 0.5) == 0 || divisor > 0xffff) {
		fprintf(stderr, "usage: quantum MICROSECONDS (1 to 54000)\n");
		return 2;
	}
	mask_pit_pin();
	if (ioperm(0x40, 4, 1))
		die("ioperm");
	outb(0x34, 0x43); /* counter 0, low and high byte, rate generator */
	outb(divisor & 0xff, 0x40);
	outb(divisor >> 8, 0x40);
	return 0;
}
