package plan

import (
	"strings"
	"testing"
)

func TestArmsOfTheBeClassStudy(t *testing.T) {
	for name, want := range map[string]Arm{
		"weight-1":     {Weight: 1},
		"weight-10":    {Weight: 10},
		"weight-100":   {Weight: 100},
		"weight-1000":  {Weight: 1000},
		"weight-10000": {Weight: 10000},
		"sched-idle":   {BackgroundPolicy: SchedIdle},
		"fifo":         {ServicePolicy: FIFO},
		"eevdf":        {},
	} {
		got, ok := FindArm(name)
		got.Name, got.Summary = "", ""
		want.Preempt = "lazy"
		if !ok || !equal(got, want) {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
		}
	}
}

func equal(a, b Arm) bool {
	return a.Preempt == b.Preempt && a.Idle == b.Idle && a.Weight == b.Weight && a.ServicePolicy == b.ServicePolicy &&
		a.BackgroundPolicy == b.BackgroundPolicy && a.Scheduler == b.Scheduler && len(a.Command) == len(b.Command)
}

func TestArmsAreSound(t *testing.T) {
	seen := map[string]bool{}
	for _, a := range Arms {
		if seen[a.Name] || a.Summary == "" || strings.Contains(a.Name, ",") {
			t.Errorf("arm %q: twice, without a summary, or with a comma", a.Name)
		}
		seen[a.Name] = true
		// What cgroup v2 takes; 0 stands for the default.
		if a.Weight < 0 || a.Weight > 10000 {
			t.Errorf("arm %s: no cgroup has cpu.weight %d", a.Name, a.Weight)
		}
	}
}
