package stage

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Prefer gives all threads of this process a nice value, those that they start included, until it is taken back; below
// what it is now takes CAP_SYS_NICE. Processes that run already keep theirs.
func Prefer(nice int) (back func() error, err error) {
	before, err := niceOf(os.Getpid())
	if err != nil {
		return nil, err
	}
	if err := setNice(nice); err != nil {
		return nil, fmt.Errorf("nice %d for the clients: %w; run it as root, or give it CAP_SYS_NICE", nice, err)
	}
	return func() error { return setNice(before) }, nil
}

func setNice(nice int) error {
	for changed := true; changed; { // a thread may have been started by one whose turn had not come
		entries, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return err
		}
		changed = false
		for _, e := range entries {
			thread, err := strconv.Atoi(e.Name())
			if err != nil {
				return err
			}
			set, err := setThread(thread, nice)
			if err != nil {
				return err
			}
			changed = changed || set
		}
	}
	return nil
}

// setThread says whether the thread had another nice value. One that has ended needs none.
func setThread(thread, nice int) (changed bool, err error) {
	now, err := niceOf(thread)
	if err == nil && now != nice {
		changed, err = true, unix.Setpriority(unix.PRIO_PROCESS, thread, nice)
	}
	if errors.Is(err, unix.ESRCH) {
		return false, nil
	}
	return changed, err
}

// niceOf is a thread's nice value. The system call counts from 20 down to 1, so that no value looks like an error.
func niceOf(thread int) (int, error) {
	n, err := unix.Getpriority(unix.PRIO_PROCESS, thread)
	return 20 - n, err
}
