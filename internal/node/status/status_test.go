package status

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"temper.dev/temper/internal/base/fixture"
	"temper.dev/temper/internal/base/host"
	"temper.dev/temper/internal/base/tier"
	"temper.dev/temper/internal/node/config"
	"temper.dev/temper/internal/node/enforce"
)

func attached(t *testing.T, ops string) host.Root {
	return fixture.Node(t, fixture.Files{
		"/sys/kernel/sched_ext/state":       "enabled\n",
		"/sys/kernel/sched_ext/enable_seq":  "3\n",
		"/sys/kernel/sched_ext/nr_rejected": "1\n",
		"/sys/kernel/sched_ext/root/ops":    ops + "\n",
		"/sys/fs/cgroup/web/cgroup.procs":   "",
	})
}

// withAgent adds the state of an agent, whose lock the test does not hold: the agent is dead.
func withAgent(t *testing.T, root host.Root) {
	state, err := os.ReadFile("testdata/agent.json")
	if err != nil {
		t.Fatal(err)
	}
	fixture.Write(t, root, "/run/temper/status.json", string(state))
}

func snapshot() (*enforce.Snapshot, error) {
	s := &enforce.Snapshot{
		Info: enforce.Info{ABI: enforce.ABI, NrCPUs: 2, HeartbeatTimeoutMs: 10000, SystemSharePct: 20, Limits: enforce.LimitsGap, LoaderPID: 4242, Reservation: 1,
			Loan: enforce.LoanIdle, SMTExclusive: 1, Fence: [8]uint64{0b11001100, 0b11}, BPFSHA256: [32]uint8{0xab, 0xcd}},
		Control: enforce.Control{TierGen: 2, HeartbeatNs: uint64(99500 * time.Millisecond), ReservationMCPU: 1500},
		Tiers:   map[uint64]enforce.Assignment{10: enforce.Assign(tier.Critical, ""), 11: enforce.Assign(tier.Background, ""), 12: enforce.Assign(tier.Background, config.LimitsGap)},
		Limits: []enforce.Limit{{Cgroup: 1, QuotaNs: 150e6, PeriodNs: 100e6, BurstNs: 20e6, UsedNs: 12345678900, BeyondNs: 2e9, OverrunNs: 1234567,
			Periods: 900, ThrottledPeriods: 33, Throttles: 77, ThrottledNs: 3e9, LongestThrottleNs: 4321000, Throttled: 6, Mode: enforce.LimitsFreeze}},
		Waits: enforce.Waits{UnderWayNs: [enforce.WaitCauses]uint64{15e6, 0, 10_400e6, 300e6}, TID: [enforce.WaitCauses]uint32{101, 0, 102, 0}},
		Hogs: []enforce.Hog{
			{SinceNs: 42e9, SeenNs: 45e9, Turns: 3, TID: 76, Process: 75, Policy: 1, Priority: 1, Starves: 1, Comm: [16]byte{'g', 'o', 'n', 'e'}},
			{SinceNs: 70e9, SeenNs: 99.5e9, Turns: 28, TID: 78, Process: 77, Policy: 1, Priority: 99, Starves: 1, Comm: [16]byte{'p', 'o', 'l', 'l'}},
			{SinceNs: 80e9, SeenNs: 99.7e9, TID: 79, Process: 79, Policy: 2, Priority: 50, Comm: [16]byte{'d', 'p', 'd', 'k'}},
			{SinceNs: 98e9, SeenNs: 99.9e9, TID: 80, Process: 80, Policy: 1, Priority: 50, Starves: 1, Error: int32(unix.ENOTSUP), Comm: [16]byte{'i', 'r', 'q'}},
		},
	}
	perCPU := enforce.Stats{LongestWaitNs: [enforce.WaitCauses]uint64{250e6, 0, 2000e6, 990e6}, Rechecks: 1, SystemOver: 2, CriticalOver: 4}
	perCPU.Gap.Bucket[5], perCPU.Gap.Bucket[8] = 98, 2
	perCPU.LoanBack.Bucket[6], perCPU.LoanBack.Bucket[7] = 99, 1
	for i := range perCPU.Tier {
		one := &perCPU.Tier[i]
		one.RunNs, one.Enqueued, one.PlacedIdle = uint64(i+1)*1500*1e6, uint64(i*10), uint64(i*100)
		one.Wait.Bucket[i], one.Wait.Bucket[i+8] = 97, 3
		one.MaxWaitNs = uint64(i+1) * 1234567
	}
	perCPU.Tier[tier.Background].Preempted, perCPU.Tier[tier.Background].StarvationTurns, perCPU.Tier[tier.Background].Aged = 7, 3, 2
	perCPU.Tier[tier.Background].Boosted = 5
	s.Stats.Add(perCPU)
	s.Stats.Add(perCPU)
	return s, nil
}

func noMaps() (*enforce.Snapshot, error)    { return nil, enforce.ErrNotPinned }
func forbidden() (*enforce.Snapshot, error) { return nil, os.ErrPermission }

func TestGolden(t *testing.T) {
	withoutSchedExt := fixture.Node(t, nil)
	alone := attached(t, "temper")
	dead := attached(t, "temper")
	withAgent(t, dead)
	other := attached(t, "rusty")
	for _, c := range []struct {
		name string
		src  Sources
	}{
		{"none", Sources{Root: withoutSchedExt, Agent: said(withoutSchedExt), Maps: noMaps}},
		{"alone", Sources{Root: alone, Agent: said(alone), Maps: snapshot, Monotonic: 100 * time.Second}},
		{"orphan", Sources{Root: dead, Agent: said(dead), Maps: snapshot, Monotonic: 105 * time.Second}},
		{"other", Sources{Root: other, Agent: said(other), Maps: forbidden}},
	} {
		s := Gather(c.src)
		var table bytes.Buffer
		s.Write(&table, Style{})
		fixture.Golden(t, c.name+".txt", table.String())
		data, err := json.MarshalIndent(s, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		fixture.Golden(t, c.name+".json", string(data)+"\n")
		fixture.Golden(t, c.name+".prom", string(scrape(t, s)))
	}
}

func TestReservationIsTold(t *testing.T) {
	for _, c := range []struct {
		loader Loader
		want   string // "": nothing
	}{
		{Loader{}, ""},
		{Loader{Reserves: true}, "of no CPU, as where critical pods request none: critical shares with standard by weight"},
		{Loader{Reserves: true, ReservationCPUs: 2.5}, "critical comes first up to 2.5 CPUs; it was over that 4 times"},
	} {
		var out bytes.Buffer
		(&Status{Enforced: true, Loader: &c.loader, Gap: &Gap{CriticalOver: 4}}).Write(&out, Style{})
		_, told, _ := strings.Cut(out.String(), "\nreservation")
		line, _, _ := strings.Cut(told, "\n")
		if strings.TrimSpace(line) != c.want {
			t.Errorf("%+v: %q, not %q", c.loader, line, c.want)
		}
	}
}

// Beyond what the node has, a reservation is none.
func TestReservationBeyondTheNodeIsAProblem(t *testing.T) {
	for milliCPU, want := range map[uint64]int{2000: 0, 2001: 1} { // of 2 CPUs
		maps, _ := snapshot()
		maps.Control.ReservationMCPU = milliCPU
		s := &Status{Enforced: true}
		s.fromMaps(maps, 100*time.Second)
		told := 0
		for _, p := range s.Problems {
			if strings.HasPrefix(p, "the reservation is 2.0 CPUs") {
				told++
			}
		}
		if told != want {
			t.Errorf("%d thousandths of a CPU: problems %q, want %d of the reservation", milliCPU, s.Problems, want)
		}
	}
}

// Whoever reads "fence CPUs 2-3" takes them for set aside.
func TestFenceOfAnOfflineCPUIsAProblem(t *testing.T) {
	root := fixture.Node(t, fixture.Files{
		"/sys/devices/system/cpu/cpu1/online": "0\n", // not in the fence
		"/sys/devices/system/cpu/cpu2/online": "1\n",
		"/sys/devices/system/cpu/cpu3/online": "0\n",
	})
	maps, _ := snapshot()
	s := &Status{}
	s.addFence(root, maps)
	if want := []string{"CPU 3 of the fence is offline: nothing is set aside there"}; !slices.Equal(s.Problems, want) {
		t.Errorf("%q, want %q", s.Problems, want)
	}
}
