/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Atomic operations, by what they order.
 *
 * Problem: in a handshake each side writes, then reads what the other writes, and needs a full barrier between the two.
 * Of `__sync_fetch_and_add()` and the like, clang drops what they return where nobody uses it. What is left is an atomic
 * without BPF_FETCH, which x86 orders all the same, and arm64 does not order at all.
 *
 * Method: ordered_*() use what they return, and so are full barriers on every architecture. relaxed_add() is for
 * counters and sums that nobody reads in a handshake. No other file calls `__sync_*`. test/object looks at the
 * instructions of the object, and at the source line of each.
 *
 * Limits: a plain write is ordered with what follows only by an ordered operation between the two.
 */
#ifndef TEMPER_ATOMIC_H
#define TEMPER_ATOMIC_H

#define ordered(operation)              \
	({                              \
		__auto_type __was = (operation); \
		barrier_var(__was);     \
		__was;                  \
	})
#define ordered_add(at, n) ordered(__sync_fetch_and_add(at, n))
#define ordered_or(at, bits) ordered(__sync_fetch_and_or(at, bits))
#define ordered_and(at, bits) ordered(__sync_fetch_and_and(at, bits))
#define ordered_swap(at, next) ordered(__sync_lock_test_and_set(at, next))
#define ordered_compare_swap(at, before, next) ordered(__sync_val_compare_and_swap(at, before, next))
#define relaxed_add(at, n) ((void)__sync_fetch_and_add(at, n))

/* Read *at into one's own *own, before all that is read later. */
#ifdef __TARGET_ARCH_x86 /* which keeps reads in order */
#define read_first(own, at) (*(volatile __typeof__(*(own)) *)(own) = *(volatile __typeof__(*(at)) *)(at))
#else
#define read_first(own, at) ordered_swap(own, *(volatile __typeof__(*(at)) *)(at))
#endif

#endif
