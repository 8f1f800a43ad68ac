package nodepods

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"temper.dev/temper/internal/base/tier"
	"temper.dev/temper/internal/node/agent"
	"temper.dev/temper/internal/node/config"
)

// node is a node's own word.
type node struct{ agent.Wanted }

func (n node) Look() agent.Wanted       { return n.Wanted }
func (n node) Refresh()                 {}
func (n node) Reload() error            { return nil }
func (n node) Changed() <-chan struct{} { return nil }

// What an agent was started with comes before the node's configuration, which stays as it was read.
func TestGiven(t *testing.T) {
	own := node{agent.Wanted{Config: &config.Config{HeartbeatTimeout: 10 * time.Second, SystemShare: 30}}}
	w := Given{Source: own, HeartbeatTimeout: time.Minute}.Look()
	if w.Config.HeartbeatTimeout != time.Minute || w.Config.SystemShare != 30 || w.Off != nil {
		t.Errorf("%+v, %+v", w.Config, w.Off)
	}
	if own.Config.HeartbeatTimeout != 10*time.Second {
		t.Error("the node's configuration was changed")
	}
	if w := (Given{Source: own, SafeMode: true}).Look(); w.Off == nil || !safeModeOn(w.Off) {
		t.Errorf("%+v", w.Off)
	}
	own.Off = &agent.Off{Reason: agent.OffByFile}
	if w := (Given{Source: own, SafeMode: true}).Look(); w.Off.Reason != agent.OffByFile {
		t.Error("the file's reason is lost")
	}
}

// A cgroup that was given is system, whether it is there or not, unless the node itself says otherwise.
func TestGivenSystemCgroups(t *testing.T) {
	own := node{agent.Wanted{Config: &config.Config{}}}
	own.Add(agent.Member{Cgroup: "/podruntime", Tier: tier.Standard, Source: "config"})
	w := Given{Source: own, System: []string{"/runtime.slice", "/podruntime"}}.Look()
	want := []agent.Member{
		{Cgroup: "/podruntime", Tier: tier.Standard, Source: "config"},
		{Cgroup: "/runtime.slice", Tier: tier.System, Source: "flag"},
	}
	if !reflect.DeepEqual(w.Members, want) {
		t.Errorf("%+v, want %+v", w.Members, want)
	}
	if problem := "/podruntime is standard by config and system by flag"; len(w.Problems) != 1 || !strings.Contains(w.Problems[0], problem) {
		t.Errorf("%q, want %q", w.Problems, problem)
	}
}

func safeModeOn(off *agent.Off) bool {
	return safeMode(agent.State{Off: off}).Status == "True"
}
