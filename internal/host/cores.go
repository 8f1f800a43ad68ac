package host

import (
	"fmt"
	"path/filepath"
)

// Cores counts the physical cores that are online: threads of one core share its units, and count once.
func (r Root) Cores() (int, error) {
	files, err := filepath.Glob(r.Path("/sys/devices/system/cpu/cpu[0-9]*/topology/thread_siblings_list"))
	if err != nil {
		return 0, err
	}
	cores := map[string]bool{}
	for _, file := range files {
		siblings, err := Read(file)
		if err != nil {
			return 0, err
		}
		cores[siblings] = true
	}
	if len(cores) == 0 {
		return 0, fmt.Errorf("%s does not say which CPUs there are", r.Path("/sys/devices/system/cpu"))
	}
	return len(cores), nil
}
