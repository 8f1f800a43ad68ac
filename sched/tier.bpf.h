/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tiers by cgroup, and what becomes of those that have used up a limit.
 *
 * Problem: a task's tier must be known in a few instructions, follow cgroup moves
 * and changes of the tier map, and be inherited by cgroups that nobody mapped.
 *
 * Method: each cgroup gets a slot in an array when the kernel announces it
 * (cgroup_init), and each task remembers its slot. A slot knows its parent's, and
 * caches its tier (and its mode of limits) together with the generation of the map it came from; when user
 * space raises control.tier_gen the next reader climbs to the nearest mapped
 * ancestor again. The kernel's own look-up by id is not used: before 6.18 it sees
 * only the cgroup namespace of whoever happens to run.
 *
 * Limits: MAX_CGROUPS at a time; a cgroup beyond that shares its parent's slot,
 * and so its parent's tier, weight and limit. A climb ends after MAX_DEPTH levels. The
 * kernel names the cpu controller's cgroup: where that controller is off, the
 * nearest ancestor that has it.
 */
#ifndef TEMPER_TIER_BPF_H
#define TEMPER_TIER_BPF_H

#include "stats.bpf.h"

#define MAX_CGROUPS TEMPER_MAX_CGROUPS
#define MAX_DEPTH 24
#define NO_SLOT 0 /* slot 0 is never given away */

enum { SERVICES = NR_TIERS, NR_SUMS }; /* critical and standard together: share.bpf.h */

struct cgroup_slot {
	struct bpf_spin_lock lock; /* over the fields from weight to charged */
	u32 weight;
	u32 nr[NR_SUMS];      /* active tasks and child cgroups, by tier */
	u32 charged[NR_SUMS]; /* weight with which this one counts in its parent's sum while nr > 0 */
	u64 sum[NR_SUMS];     /* weights of what is active below; atomic */
	u64 id;
	u32 parent;
	u32 tier;
	u32 limits;   /* enum temper_limits */
	u64 tier_gen; /* control.tier_gen + 1 for which `tier` and `limits` hold; 0: never looked up */
	u32 default_tier;
	u32 limited;	  /* look_up_limit(): the nearest limited cgroup, from this one up; NO_SLOT: none */
	u64 limited_gen;  /* limits_gen for which that holds */
	u64 cgroup;	  /* bandwidth.bpf.h: its address; 0: it is gone, or the kernel tells of limits */
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
	__uint(type, BPF_MAP_TYPE_CGRP_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
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

static u32 slot_of(struct cgroup *cgrp)
{
	u32 *slot = bpf_cgrp_storage_get(&cgroup_slots, cgrp, 0, 0);

	return slot ? *slot : NO_SLOT;
}

static bool has_name(struct cgroup *cgrp, const char *name, u32 size)
{
	char text[16] = {};

	bpf_probe_read_kernel_str(text, sizeof(text), cgrp->kn->name);
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

static __noinline u32 look_up_tier(u32 index, u64 gen)
{
	struct cgroup_slot *first = slot_at(index), *s = first;
	u32 tier = TIER_STANDARD, limits = config.limits;
	int level;

	if (!first)
		return TIER_STANDARD;
	tier = first->default_tier;
	bpf_for(level, 0, MAX_DEPTH) {
		u64 id = s->id;
		struct temper_assignment *mapped = bpf_map_lookup_elem(&tiers, &id);

		if (mapped) {
			tier = mapped->tier;
			if (mapped->limits)
				limits = mapped->limits - 1;
			break;
		}
		if (s->parent == NO_SLOT)
			break;
		s = slot_at(s->parent);
		if (!s)
			break;
	}
	if (tier >= NR_TIERS)
		tier = TIER_STANDARD;
	first->tier = tier;
	first->limits = limits;
	first->tier_gen = gen + 1;
	return tier;
}

static __always_inline u32 tier_of_slot(u32 index)
{
	struct cgroup_slot *s = slot_at(index);
	struct temper_control *c = get_control();

	if (!s || !c)
		return TIER_STANDARD;
	return s->tier_gen == c->tier_gen + 1 ? s->tier : look_up_tier(index, c->tier_gen);
}

static s32 open_slot(struct cgroup *cgrp, u32 weight)
{
	struct cgroup *above = cgrp->level > 0 ? bpf_cgroup_ancestor(cgrp, cgrp->level - 1) : NULL;
	struct cgroup_slot *s, *parent = NULL;
	u32 index, *mine;

	mine = bpf_cgrp_storage_get(&cgroup_slots, cgrp, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!mine) {
		if (above)
			bpf_cgroup_release(above);
		return -ENOMEM;
	}
	u32 parent_index = above ? slot_of(above) : NO_SLOT;

	if (above)
		bpf_cgroup_release(above);
	if (bpf_map_pop_elem(&free_slots, &index)) {
		*mine = parent_index;
		COUNT(crowded);
		return 0;
	}
	s = slot_at(index);
	if (!s)
		return -ENOMEM;
	if (parent_index != NO_SLOT)
		parent = slot_at(parent_index);
	__builtin_memset(s->nr, 0, sizeof(s->nr));
	__builtin_memset(s->sum, 0, sizeof(s->sum));
	s->weight = weight;
	s->id = cgrp->kn->id;
	s->parent = parent_index;
	s->tier_gen = 0;
	s->limited_gen = 0;
	s->default_tier = default_tier(cgrp, parent ? parent->default_tier : TIER_STANDARD);
	*mine = index;
	return 0;
}

static void close_slot(struct cgroup *cgrp)
{
	u32 index = slot_of(cgrp);
	struct cgroup_slot *s = slot_at(index);

	/* One that found no slot free points at its parent's, which is not its to give back. */
	if (s && index != NO_SLOT && s->id == cgrp->kn->id)
		bpf_map_push_elem(&free_slots, &index, BPF_ANY);
	else
		ADD(crowded, -1);
}

/*
 * What the kernel does for one CPU cannot be done elsewhere or by another, and goes before
 * all else there.
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
