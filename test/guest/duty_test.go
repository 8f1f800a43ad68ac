//go:build guest

package guest

import (
	"os"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const (
	pairRole  = "TEMPER_TEST_PAIR"
	largeRole = "TEMPER_TEST_LARGE"
)

// Only from here is it sure to run on the process's first thread, the one that a signal for the process is for.
func init() {
	if os.Getenv(pairRole) != "" {
		beAPair()
	}
}

// beAPair is a process of two threads that compute without an end, on CPU 0.
func beAPair() {
	runtime.LockOSThread()
	if unix.Gettid() != os.Getpid() {
		panic("not the first thread")
	}
	runtime.GOMAXPROCS(2)
	bindToFirst()
	go func() {
		runtime.LockOSThread()
		bindToFirst() // started by a thread that is not
		os.Stdout.Write([]byte{1})
		for {
		}
	}()
	for {
	}
}

// Of a process that is to stop, the kernel tells one thread. Another that has the CPU just then does not keep it.
func processOfTwoThreadsStops(t *testing.T) {
	bindSelf(t, []int{1})
	t.Setenv("GODEBUG", "asyncpreemptoff=1") // else Go sends both threads signals, and whoever has one takes the other, too
	s := play(t, pairRole+"=1")
	if _, err := s.works.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	s.moveTo(t, "/critical")
	var longest time.Duration
	for i := range 20 {
		time.Sleep(20*time.Millisecond + time.Duration(i)*time.Millisecond) // until one of them runs, and not always the same
		began := time.Now()
		if err := unix.Kill(s.pid, unix.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		eventually(t, "it stops", func() bool { return s.state(t) == "T" })
		longest = max(longest, time.Since(began))
		if err := unix.Kill(s.pid, unix.SIGCONT); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("it stops within %v", longest)
	if longest > 25*time.Millisecond {
		t.Errorf("it took %v to stop", longest)
	}
}

func bindToFirst() {
	set := cpuSet(0)
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		panic(err)
	}
}

// beLarge has memory that takes long to give back, page by page.
func beLarge() {
	bindToFirst()
	memory, err := unix.Mmap(-1, 0, 64<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		panic(err)
	}
	for _, advice := range []int{unix.MADV_NOHUGEPAGE, unix.MADV_POPULATE_WRITE} {
		if err := unix.Madvise(memory, advice); err != nil {
			panic(err)
		}
	}
	os.Stdout.Write([]byte{1})
	for {
		_ = unix.Pause()
	}
}

// What the kernel has to do on a CPU for long, here to end a process, leaves time for critical work that may run nowhere
// else.
func longDutyLeavesTimeForCritical(t *testing.T) {
	bindSelf(t, []int{1})
	large := play(t, largeRole+"=1")
	if _, err := large.works.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	critical := pinned(t, "/critical", 0)[0]
	large.moveTo(t, "/background")
	began, since, had, longest := time.Now(), time.Now(), critical.cpuTime(t), time.Duration(0)
	if err := large.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is dead", func() bool {
		if has := critical.cpuTime(t); has != had {
			since, had = time.Now(), has
		}
		longest = max(longest, time.Since(since))
		return large.state(t) == "Z"
	})
	took := time.Since(began)
	t.Logf("it takes %v to end, and critical work %v at the most", took, longest)
	if took < 150*time.Millisecond {
		t.Errorf("it ended within %v: that is too short to see anything", took)
	}
	if longest > 10*time.Millisecond {
		t.Errorf("critical work went without a CPU for %v", longest)
	}
}
