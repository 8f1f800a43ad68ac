package host

import (
	"fmt"
	"path/filepath"
)

// IsOffline says whether a CPU is switched off. One that cannot be switched has no file that says so, and is on.
func (r Root) IsOffline(cpu int) bool {
	text, err := Read(r.Path(fmt.Sprintf("/sys/devices/system/cpu/cpu%d/online", cpu)))
	return err == nil && text == "0"
}

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
