package stage

import (
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// write makes a proc file system with one moment's figures.
func write(t *testing.T, stat string, processes map[int]string) string {
	t.Helper()
	proc := t.TempDir()
	files := map[string]string{"stat": stat}
	for pid, text := range processes {
		files[filepath.Join(strconv.Itoa(pid), "stat")] = text
	}
	for name, text := range files {
		path := filepath.Join(proc, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return proc
}

func TestReadCPU(t *testing.T) {
	proc := write(t,
		"cpu  100 20 30 9999 888 4 5 6 77 66\ncpu0 1 1 1 1 1 1 1 1 1 1\n",
		map[int]string{
			7: "7 (a b) (c) R 1 2 3 4 5 6 7 8 9 10 40 2 0 0 20 0 1 0 100\n",
			9: "9 (service) S 1 2 3 4 5 6 7 8 9 10 3 5 0 0 20 0 1 0 100\n",
		})
	c, err := ReadCPU(proc, []int{7, 9})
	if err != nil {
		t.Fatal(err)
	}
	// user, nice, system, irq, softirq and steal; neither idle and iowait nor guest time, which is user time already.
	if want := 165 * time.Second / 100; c.Busy != want {
		t.Errorf("busy for %v, not %v", c.Busy, want)
	}
	if want := 50 * time.Second / 100; c.Own != want {
		t.Errorf("own processes used %v, not %v", c.Own, want)
	}
	if _, err := ReadCPU(proc, []int{8}); err == nil {
		t.Error("a process that is gone is no error")
	}
}

func TestWhatIsNoProc(t *testing.T) {
	for what, proc := range map[string]string{
		"no cpu line":    write(t, "intr 1 2 3\n", nil),
		"a short line":   write(t, "cpu 1 2 3\n", nil),
		"no number":      write(t, "cpu  a 20 30 9999 888 4 5 6 77 66\n", nil),
		"no such file":   t.TempDir(),
		"a cut-off stat": write(t, "cpu  1 2 3 4 5 6 7 8 9 10\n", map[int]string{7: "7 (a) R 1 2"}),
	} {
		if _, err := ReadCPU(proc, []int{7}); err == nil {
			t.Errorf("%s: no error", what)
		}
	}
}

func TestForeign(t *testing.T) {
	from := CPU{time.Unix(100, 0), 10 * time.Second, 3 * time.Second}
	to := CPU{time.Unix(104, 0), 15 * time.Second, 5 * time.Second}
	if f := Foreign(from, to); math.Abs(f-0.75) > 1e-9 {
		t.Errorf("others had %v CPUs, not 0.75", f)
	}
}
