package stage

import (
	"os"
	"runtime"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// All threads get it, those that are started afterwards too; who may not is told what is missing.
func TestPrefer(t *testing.T) {
	before, err := niceOf(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	preferred := before - 3
	back, err := Prefer(preferred)
	if os.Geteuid() != 0 {
		if err == nil {
			t.Error("whoever is not root has got a higher priority")
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := back(); err != nil {
			t.Error(err)
		}
		each(t, before)
	}()
	each(t, preferred)
	// Each goroutine keeps its thread until all have one.
	const n = 8
	ready, end := make(chan int, n), make(chan struct{})
	for range n {
		go func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			ready <- unix.Gettid()
			<-end
		}()
	}
	for range n {
		if nice, err := niceOf(<-ready); nice != preferred || err != nil {
			t.Errorf("a new thread has %d, %v", nice, err)
		}
	}
	close(end)
}

func each(t *testing.T, want int) {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		thread, err := strconv.Atoi(e.Name())
		if err != nil {
			t.Fatal(err)
		}
		if nice, err := niceOf(thread); err == nil && nice != want { // it may have ended
			t.Errorf("thread %d has %d, not %d", thread, nice, want)
		}
	}
}
