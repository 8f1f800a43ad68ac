/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ring of io_uring whose workers write: eight times 1 MiB to a file in memory, each time that they are asked.
 */
#include <linux/io_uring.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "trouble.h"

static void *sqes, *ring;
static int ring_fd;
static struct io_uring_params ring_params;

static void prepare_workers(void)
{
	ring_fd = syscall(SYS_io_uring_setup, 64, &ring_params);
	check(ring_fd >= 0, "io_uring");
	ring = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring_fd, IORING_OFF_SQ_RING);
	sqes = mmap(NULL, 64 * sizeof(struct io_uring_sqe), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring_fd, IORING_OFF_SQES);
	check(ring != MAP_FAILED && sqes != MAP_FAILED, "the ring");
}

static void ask_workers(void)
{
	static char data[1 << 20];
	static int file = -1;
	uint32_t *tail = ring + ring_params.sq_off.tail, *array = ring + ring_params.sq_off.array, *head = ring + ring_params.cq_off.head;
	struct io_uring_sqe *s = sqes;

	if (file < 0)
		check((file = syscall(SYS_memfd_create, "reach", 0)) >= 0, "memfd");
	for (int i = 0; i < 8; i++) {
		s[i] = (struct io_uring_sqe){ .opcode = IORING_OP_WRITE, .flags = IOSQE_ASYNC, .fd = file, .addr = (uint64_t)data, .len = sizeof(data), .off = i << 20 };
		array[(*tail + i) & 63] = i;
	}
	__atomic_store_n(tail, *tail + 8, __ATOMIC_RELEASE);
	check(syscall(SYS_io_uring_enter, ring_fd, 8, 8, IORING_ENTER_GETEVENTS, NULL, 0) == 8, "the ring");
	__atomic_store_n(head, *head + 8, __ATOMIC_RELEASE);
}
