package status

import (
	"strings"
	"testing"

	"temper.dev/temper/internal/base/fixture"
	"temper.dev/temper/internal/base/tier"
	"temper.dev/temper/internal/node/agent"
)

func TestCgroupsOf(t *testing.T) {
	root := fixture.Tree(t, "/batch", "/kubepods/poda")
	fixture.Write(t, root, "/sys/fs/cgroup/batch/cpu.stat", "usage_usec 2500000\nuser_usec 1\n")
	fixture.Write(t, root, "/sys/fs/cgroup/batch/cpu.pressure", "some avg10=0.00 total=250000\nfull avg10=0.00 total=1\n")
	pods := cgroupsOf(root, []agent.Member{
		{Cgroup: "/batch", Tier: tier.Background, Present: true},
		{Cgroup: "/gone", Tier: tier.Critical},
		{Cgroup: "/kubepods/poda", Pod: "shop/web", Tier: tier.Critical, Present: true},
	})
	if len(pods) != 2 || pods[1].Name != "shop/web" || pods[1].Tier != "critical" || pods[1].CPU != nil || pods[1].Waiting != nil {
		t.Fatalf("%+v", pods)
	}
	if b := pods[0]; b.Name != "/batch" || b.CPU.Total != 2.5 || b.Waiting.Total != 0.25 {
		t.Errorf("%+v", b)
	}
}

// A node without Temper has tiers that nobody counts, and says so.
func TestTopOfAPlainNode(t *testing.T) {
	r := Top(fixture.Tree(t), "here")
	if r.Error != "" || len(r.Nodes) != 1 {
		t.Fatalf("%+v", r)
	}
	if l := r.Nodes[0]; l.Node != "here" || l.Enforced != "no" || l.Rung != "observe" || !l.Live || len(l.Tiers) != tier.Count || len(l.Pods) != 0 || l.Overrun != nil {
		t.Errorf("%+v", l)
	}
	for _, tier := range r.Nodes[0].Tiers {
		if tier.CPU != nil || tier.Wait != nil {
			t.Errorf("%s has figures that nobody counts: %+v", tier.Tier, tier)
		}
	}
	if l := r.Nodes[0]; len(l.Problems) != 0 || !strings.HasPrefix(l.Why, "no agent runs") {
		t.Errorf("it is not enforced since %q, with problems %q; want that no agent runs, and none", l.Why, l.Problems)
	}
}
