package observe

import (
	"fmt"
	"strconv"
	"strings"
)

// CPUSet is a set of CPUs; bit i of word w is CPU 64*w+i.
type CPUSet []uint64

// Has tells whether a CPU is in the set.
func (s CPUSet) Has(cpu int) bool { return cpu/64 < len(s) && s[cpu/64]>>(cpu%64)&1 != 0 }

// ParseCPUSet reads a list as the kernel writes it: "0-3,8".
func ParseCPUSet(list string) (CPUSet, error) {
	var s CPUSet
	for part := range strings.SplitSeq(strings.TrimSpace(list), ",") {
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		first, err := strconv.ParseUint(from, 10, 16)
		if err != nil {
			return nil, fmt.Errorf("CPU list %q: %w", list, err)
		}
		last, err := strconv.ParseUint(to, 10, 16)
		if err != nil {
			return nil, fmt.Errorf("CPU list %q: %w", list, err)
		}
		for cpu := first; cpu <= last; cpu++ {
			for uint64(len(s)) <= cpu/64 {
				s = append(s, 0)
			}
			s[cpu/64] |= 1 << (cpu % 64)
		}
	}
	return s, nil
}
