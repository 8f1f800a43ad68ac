/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tiers by cgroup, and what becomes of those that have used up a limit.
 *
 * Problem: a task's tier must be known in a few instructions, follow cgroup moves
 * and changes of the tier map, and be inherited by cgroups that nobody mapped.
 *
 * Method: each cgroup gets a slot in an array when the kernel announces it
 * (cgroup_init), and each task remembers its slot. A slot knows its parent's, and caches
 * its policy (tier, and mode of limits) together with the generation of the map it came from.
 * It is looked up when the cgroup is made: the parent's is known then. When user space
 * raises control.tier_gen, the next reader climbs to the nearest ancestor that is mapped or
 * known, and all that it passes is known afterwards: in one generation no cgroup is passed
 * twice, at whatever depth. The kernel's own look-up by id is not used: before 6.18 it sees
 * only the cgroup namespace of whoever happens to run.
 *
 * Limits: MAX_CGROUPS at a time, the last RESERVED_SLOTS of them for cgroups that belong to root, so that no
 * user who was given a subtree can use them up; and none below the first MAX_LEVELS, since each level is looked at where a
 * task is queued, begins and ends its turn, with interrupts off. Tasks of a cgroup beyond that run as background, whatever
 * its tier and its own limit, within its parent's limits: nobody gains by it. The kernel names the cpu
 * controller's cgroup: where that controller is off, the nearest ancestor that has it.
 */
#ifndef TEMPER_TIER_BPF_H
#define TEMPER_TIER_BPF_H

#include "stats.bpf.h"

#define MAX_CGROUPS TEMPER_MAX_CGROUPS
#define MAX_LEVELS TEMPER_MAX_LEVELS
#define NO_SLOT 0 /* slot 0 is never given away */
#define RESERVED_SLOTS 2048 /* those below */
#define SHARED_SLOT (1U << 31) /* an ancestor's, of a cgroup beyond MAX_CGROUPS or MAX_LEVELS */
#define NEAR_LEVELS 8

/*
 * Evaluate `step`, which goes up a level and says whether there is another, until it says no or all levels that are known
 * are behind. An iterator costs more than a level does: the first levels go without one.
 */
#define climb(step)                                                       \
	({                                                                \
		bool __more = true;                                       \
		u32 __i;                                                  \
		for (int __n = 0; __more && __n < NEAR_LEVELS; __n++)     \
			__more = (step);                                  \
		if (__more)                                               \
			bpf_for(__i, NEAR_LEVELS, MAX_LEVELS + 1)         \
				if (!(step))                              \
					break;                            \
	})

enum { SERVICES = NR_TIERS, NR_SUMS }; /* critical and standard together: share.bpf.h */

struct cgroup_slot {
	struct bpf_spin_lock lock; /* over the fields from weight to charged */
	u32 weight;
	u32 nr[NR_SUMS];      /* active tasks and child cgroups, by tier */
	u32 charged[NR_SUMS]; /* weight with which this one counts in its parent's sum while nr > 0 */
	u64 sum[NR_SUMS];     /* weights of what is active below; atomic */
	u64 id;
	u32 parent;
	u32 default_tier;
	u64 policy; /* policy_at(): of which generation, which mode of limits, which tier; written whole */
	u64 limited; /* limited_at(): as of which limits_gen, the nearest limited cgroup, from this one up; written whole */
	u64 cgroup;	  /* kernel_limits.bpf.h: its address; 0: it is gone, or the kernel tells of limits */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_CGROUPS);
	__type(key, u32);
	__type(value, struct cgroup_slot);
} cgroups SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, MAX_CGROUPS);
	__type(value, u32);
} free_slots SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, RESERVED_SLOTS);
	__type(value, u32);
} reserved_slots SEC(".maps");

/*
 * By cgroup id. The kernel's storage for cgroups would not do: where a task was interrupted in the middle of asking for any
 * cgroup's, whoever asks next on that CPU is told that there is none. A cgroup would be refused, or a task count in none.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_CGROUPS);
	__type(key, u64);
	__type(value, u32);
} cgroup_slots SEC(".maps");

/* Written from user space, by cgroup id. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_CGROUPS);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, u64);
	__type(value, struct temper_assignment);
} tiers SEC(".maps");

static __always_inline struct cgroup_slot *slot_at(u32 index)
{
	return bpf_map_lookup_elem(&cgroups, &index);
}

static __always_inline u32 known_slot(u64 id)
{
	u32 *slot = bpf_map_lookup_elem(&cgroup_slots, &id);

	return slot ? *slot : NO_SLOT;
}

/* By hand, since the kernel's own call for it wants a cgroup that it trusts: that of init_task's arguments is none. */
static __always_inline u64 ancestor_id(struct cgroup *cgrp, u32 level)
{
	struct cgroup *ancestor = NULL;

	bpf_probe_read_kernel(&ancestor, sizeof(ancestor), (void *)cgrp + bpf_core_field_offset(struct cgroup, ancestors) + level * sizeof(ancestor));
	return BPF_CORE_READ(ancestor, kn, id);
}

/*
 * Of a cgroup that has no slot, its nearest ancestor's. Where one has none, those below have none either: in as many steps as
 * a level has bits, at any depth.
 */
static __noinline u32 shared_slot(struct cgroup *cgrp)
{
	u32 known = 0, unknown = cgrp->level, nearest = NO_SLOT, i;

	bpf_for(i, 0, 32) { /* an iterator: the verifier follows one step, not all */
		u32 level = known + (unknown - known) / 2, slot;

		if (known >= unknown)
			break;
		slot = known_slot(ancestor_id(cgrp, level));
		if (slot == NO_SLOT) {
			unknown = level;
		} else {
			known = level + 1;
			nearest = slot;
		}
	}
	return nearest | SHARED_SLOT;
}

static u32 stored_slot(struct cgroup *cgrp)
{
	u32 slot = known_slot(untrusted(cgrp)->kn->id);

	return slot == NO_SLOT ? shared_slot(cgrp) : slot;
}

static __always_inline u32 slot_of(struct cgroup *cgrp)
{
	return stored_slot(cgrp) & ~SHARED_SLOT;
}

/* A task is of this cgroup now. */
static void enter_cgroup(struct task_state *t, struct cgroup *cgrp)
{
	u32 slot = stored_slot(cgrp);

	t->cgroup = slot & ~SHARED_SLOT;
	t->crowded = slot & SHARED_SLOT;
}

static bool has_name(struct cgroup *cgrp, const char *name, u32 size)
{
	char text[16] = {};

	bpf_probe_read_kernel_str(text, sizeof(text), untrusted(cgrp)->kn->name);
	for (u32 i = 0; i < size && i < sizeof(text); i++)
		if (text[i] != name[i])
			return false;
	return true;
}

/* Without a mapped ancestor: systemd's own services are the system, all else is standard. */
static u32 default_tier(struct cgroup *cgrp, u32 inherited)
{
	if (cgrp->level == 1 && (has_name(cgrp, "system.slice", sizeof("system.slice")) ||
				 has_name(cgrp, "init.scope", sizeof("init.scope"))))
		return TIER_SYSTEM;
	return inherited;
}

/* NR_TIERS: neither it nor a cgroup above is mapped. */
static __always_inline u64 policy_at(u64 gen, u32 limits, u32 tier)
{
	return (gen + 1) << 8 | limits << 4 | tier;
}

static __always_inline u32 tier_of_policy(u64 policy, struct cgroup_slot *s)
{
	u32 tier = policy & 15;

	return tier < NR_TIERS ? tier : s->default_tier;
}

static __always_inline u32 limits_of_policy(u64 policy)
{
	return policy >> 4 & 15;
}

/* What a slot's cgroup was given itself, or is known to have inherited; 0: that is for the parent's to say. */
static __always_inline u64 known_policy(struct cgroup_slot *s, u64 gen)
{
	u64 id = s->id, known = s->policy;
	struct temper_assignment *mapped;

	if (known >> 8 == gen + 1)
		return known;
	mapped = bpf_map_lookup_elem(&tiers, &id);
	if (mapped)
		return policy_at(gen, mapped->limits ? mapped->limits - 1 : config.limits,
				 mapped->tier < NR_TIERS ? mapped->tier : TIER_BACKGROUND);
	return s->parent == NO_SLOT ? policy_at(gen, config.limits, NR_TIERS) : 0;
}

/* The steps of look_up_policy(): up to one that is known, and from the first again, telling all of it. */
static __always_inline bool ask_policy(u32 *at, u64 gen, u64 *policy)
{
	struct cgroup_slot *s = slot_at(*at);

	if (!s)
		return false;
	*policy = known_policy(s, gen);
	if (*policy)
		return false;
	*at = s->parent;
	return true;
}

static __always_inline bool tell_policy(u32 *at, u32 last, u64 policy)
{
	struct cgroup_slot *s = slot_at(*at);

	if (!s)
		return false;
	s->policy = policy;
	if (*at == last)
		return false;
	*at = s->parent;
	return true;
}

/* Global, so that the verifier follows the loops once. */
__noinline u64 look_up_policy(u32 index, u64 gen)
{
	u32 known = index, at = index;
	u64 policy = 0;

	climb(ask_policy(&known, gen, &policy));
	if (policy)
		climb(tell_policy(&at, known, policy));
	return policy;
}

/* What holds for a cgroup just now; 0: that cannot be known. */
static __always_inline u64 policy_of(struct cgroup_slot *s, u32 index)
{
	struct temper_control *c = get_control();

	if (!c)
		return 0;
	u64 gen = *(volatile u64 *)&c->tier_gen;

	return s->policy >> 8 == gen + 1 ? s->policy : look_up_policy(index, gen);
}

static __always_inline u32 tier_of_slot(u32 index)
{
	struct cgroup_slot *s = index == NO_SLOT ? NULL : slot_at(index);
	u64 policy = s ? policy_of(s, index) : 0;

	return policy ? tier_of_policy(policy, s) : TIER_BACKGROUND;
}

/* Does it belong to root? What the kernel does not say is no. */
static bool is_roots(struct cgroup *cgrp)
{
	return bpf_core_field_exists(cgrp->kn->iattr->ia_uid) && (!cgrp->kn->iattr || !cgrp->kn->iattr->ia_uid.val);
}

/* A place for what is known of a cgroup; NO_SLOT: none is left. */
static __always_inline u32 free_slot(struct cgroup *cgrp)
{
	u32 index;

	if (bpf_map_pop_elem(&free_slots, &index) && (!is_roots(cgrp) || bpf_map_pop_elem(&reserved_slots, &index)))
		return NO_SLOT;
	return index;
}

static __always_inline void give_back_slot(u32 index)
{
	if (index >= RESERVED_SLOTS)
		bpf_map_push_elem(&free_slots, &index, BPF_ANY);
	else
		bpf_map_push_elem(&reserved_slots, &index, BPF_ANY);
}

static void open_slot(struct cgroup *cgrp, u32 weight)
{
	struct cgroup *above = cgrp->level > 0 ? bpf_cgroup_ancestor(cgrp, cgrp->level - 1) : NULL;
	u32 parent = above ? stored_slot(above) : NO_SLOT, parent_index = parent & ~SHARED_SLOT, index;
	struct cgroup_slot *s, *its = NULL;
	u64 id = untrusted(cgrp)->kn->id;

	if (above)
		bpf_cgroup_release(above);
	/* Below one that found none, what that one was given is not known either. */
	index = (parent & SHARED_SLOT) || cgrp->level > MAX_LEVELS ? NO_SLOT : free_slot(cgrp);
	s = index == NO_SLOT ? NULL : slot_at(index);
	if (!s) {
		COUNT(crowded);
		return;
	}
	if (parent_index != NO_SLOT)
		its = slot_at(parent_index);
	__builtin_memset(s->nr, 0, sizeof(s->nr));
	__builtin_memset(s->sum, 0, sizeof(s->sum));
	s->weight = weight;
	s->id = id;
	s->parent = parent_index;
	s->policy = 0;
	s->limited = 0;
	s->default_tier = default_tier(cgrp, its ? its->default_tier : TIER_STANDARD);
	policy_of(s, index);
	if (bpf_map_update_elem(&cgroup_slots, &id, &index, BPF_ANY)) {
		give_back_slot(index);
		COUNT(crowded);
	}
}

static void close_slot(struct cgroup *cgrp)
{
	u64 id = untrusted(cgrp)->kn->id;
	u32 index = known_slot(id);

	if (index == NO_SLOT) {
		ADD(crowded, -1);
		return;
	}
	bpf_map_delete_elem(&cgroup_slots, &id);
	give_back_slot(index);
}

/*
 * What the kernel does for one CPU cannot be done elsewhere or by another, and goes first there, within a token bucket
 * (tokens.bpf.h).
 */
static __always_inline bool serves_one_cpu(struct task_struct *p)
{
	return (p->flags & PF_KTHREAD) && p->nr_cpus_allowed == 1;
}

/* Kernel threads that the kernel itself holds back by nice (khugepaged, ksmd) are no system's need. */
static __always_inline u32 tier_of_kthread(struct task_struct *p)
{
	return p->static_prio > DEFAULT_PRIO ? TIER_STANDARD : TIER_SYSTEM;
}

#endif
