// SPDX-License-Identifier: GPL-2.0
/*
 * Debian's static libelf 0.192 refers to two functions of elfutils' internal libeu,
 * which no package ships. They set up and free a search tree that only libdw fills, so
 * for a program without libdw there is nothing to do. Weak: a complete libelf wins.
 */
__attribute__((weak)) void eu_search_tree_init(void *tree, int (*compare)(const void *, const void *))
{
	(void)tree;
	(void)compare;
}

__attribute__((weak)) void eu_search_tree_fini(void *tree, void (*free_node)(void *))
{
	(void)tree;
	(void)free_node;
}
