package nodepods

import (
	"testing"
	"time"

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

func safeModeOn(off *agent.Off) bool {
	return safeMode(agent.State{Off: off}).Status == "True"
}
