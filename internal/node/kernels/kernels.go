// Package kernels knows what a kernel's version says about sched_ext. It needs no node, and no kernel of its own.
package kernels

import "fmt"

// First is the first version with sched_ext.
const First = "6.12"

// Cure is what to do where the kernel is the cause.
const Cure = "boot a kernel with CONFIG_SCHED_CLASS_EXT=y, such as Debian's 6.18 to 7.0 or Ubuntu's 25.04 and later"

// HasSchedExt tells whether a kernel of this release (uname -r) can have sched_ext. Whether it was built with it, its
// version does not say.
func HasSchedExt(release string) (bool, error) {
	var major, minor int
	if _, err := fmt.Sscanf(release, "%d.%d", &major, &minor); err != nil {
		return false, fmt.Errorf("version %s cannot be understood", release)
	}
	return major > 6 || major == 6 && minor >= 12, nil
}
