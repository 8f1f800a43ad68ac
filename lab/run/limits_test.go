package run

import (
	"testing"

	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/lab/plan"
)

func TestCheckLimits(t *testing.T) {
	good := plan.Limits{Service: plan.GoService, Arms: []string{"stock", "temper"}, Steps: []int{0}, Clients: 8, CPUs: 4, Limit: 1.5, Load: 0.8, Seconds: 6, WarmUp: 1}
	if err := CheckLimits(good); err != nil {
		t.Error(err)
	}
	for what, change := range map[string]func(*plan.Limits){
		"an unknown service":           func(p *plan.Limits) { p.Service = "oracle" },
		"an unknown arm":               func(p *plan.Limits) { p.Arms = []string{"eevdf"} },
		"no arms":                      func(p *plan.Limits) { p.Arms = nil },
		"no steps":                     func(p *plan.Limits) { p.Steps = nil },
		"a negative step":              func(p *plan.Limits) { p.Steps = []int{-1} },
		"no clients":                   func(p *plan.Limits) { p.Clients = 0 },
		"a limit beyond all CPUs":      func(p *plan.Limits) { p.Limit = 4.5 },
		"no limit":                     func(p *plan.Limits) { p.Limit = 0 },
		"load beyond the limit":        func(p *plan.Limits) { p.Load = 1.1 },
		"windows of ten periods":       func(p *plan.Limits) { p.Seconds = 1 },
		"parts of sysbench's seconds":  func(p *plan.Limits) { p.Service, p.Seconds = plan.MariaDB, 1.5 },
		"no warm-up":                   func(p *plan.Limits) { p.WarmUp = 0 },
		"more CPUs than machines have": func(p *plan.Limits) { p.CPUs, p.Limit = 99, 1 },
	} {
		bad := good
		change(&bad)
		if err := CheckLimits(bad); exit.StatusOf(err) != exit.Usage {
			t.Errorf("%s: %v", what, err)
		}
	}
}
