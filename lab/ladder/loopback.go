package ladder

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// RaiseLoopback brings up the loopback interface of a network namespace that is new.
func RaiseLoopback() error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(s)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, lo); err != nil {
		return fmt.Errorf("raise lo: %w", err)
	}
	return nil
}
