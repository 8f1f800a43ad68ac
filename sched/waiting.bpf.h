/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Who waits, be it by the ten thousand, a few at a time.
 *
 * Problem: age.bpf.h has to look at every task that waits, again and again. A queue can only be walked from an end, with
 * the soft interrupt kept for as long: 10,000 tasks keep a critical task on that CPU waiting for milliseconds.
 *
 * Method: a bit for each process id, and a bit for each word of those. Whoever queues a task sets its bit, where it is not
 * set; a look goes on from the bit where the last one ended, and clears those of tasks that wait no longer. A task in
 * steady work finds its bit set, and only reads it.
 *
 * Handshake: mark_waiting() is called after task_state.queued was written and an ordered operation, and reads the bit.
 * unmark() clears the bit, and whoever calls it reads task_state.queued after that, and marks the task again if it waits.
 * So one of the two sees the other. The same between a word and its bit above.
 *
 * Limits: process ids up to the most that the kernel gives out, 4,194,304, which takes 512 KiB. next_waiting() reads at most
 * ID_WORDS / 64 words above, and one below.
 */
#ifndef TEMPER_WAITING_BPF_H
#define TEMPER_WAITING_BPF_H

#include "state.bpf.h"

enum { MOST_IDS = 1 << 22, ID_WORDS = MOST_IDS / 64 };

static u64 waiting[ID_WORDS];
static u64 waiting_words[ID_WORDS / 64]; /* which of those are not 0 */

static __always_inline u64 id_bit(u32 i)
{
	return 1ULL << (i % 64);
}

static __always_inline void set_once(u64 *word, u64 bit)
{
	if (!(*(volatile u64 *)word & bit))
		ordered_or(word, bit);
}

/* Partner: unmark(). */
static __always_inline void mark_waiting(s32 pid)
{
	u32 id = (u32)pid % MOST_IDS;

	set_once(&waiting[id / 64], id_bit(id));
	set_once(&waiting_words[id / 64 / 64], id_bit(id / 64));
}

/* Partner: mark_waiting(). The caller looks at the task after this. */
static __always_inline void unmark(s32 pid)
{
	u32 id = (u32)pid % MOST_IDS, w = id / 64;

	if (ordered_and(&waiting[w], ~id_bit(id)) & ~id_bit(id))
		return;
	ordered_and(&waiting_words[w / 64], ~id_bit(w));
	if (*(volatile u64 *)&waiting[w])
		set_once(&waiting_words[w / 64], id_bit(w));
}

/*
 * The next that is marked, from this process id on; 0: there is none. Now and then one that is not: its word has just become
 * 0. Global, so that the verifier follows the loop once.
 */
__noinline u32 next_waiting(u32 from)
{
	u32 w = from / 64;

	if (w >= ID_WORDS)
		return 0;
	u64 word = waiting[w] & ~0ULL << (from % 64);

	if (word)
		return w * 64 + __builtin_ctzll(word);
	w++;
	for (u32 i = 0; i <= ID_WORDS / 64; i++) {
		if (w >= ID_WORDS)
			return 0;
		u64 above = waiting_words[w / 64] & ~0ULL << (w % 64);

		w &= ~63U;
		if (above) {
			w = (w + __builtin_ctzll(above)) % ID_WORDS;
			word = waiting[w];
			return w * 64 + (word ? __builtin_ctzll(word) : 0);
		}
		w += 64;
	}
	return 0;
}

#endif
