package pathfenceprom_test

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/expfmt"

	pathfence "temper.dev/temper/pathfence/go"
	"temper.dev/temper/pathfence/go/pathfenceprom"
)

func TestWaits(t *testing.T) {
	waits := pathfenceprom.NewWaits()
	fence, err := pathfence.New(pathfence.Config{Workers: 1, Classes: []pathfence.Class{{Name: "it", Keys: []string{"it"}}}, OnDecision: waits.Observe})
	if err != nil {
		t.Fatal(err)
	}
	defer fence.Close()
	for range 2 {
		permit, err := fence.Acquire(t.Context(), pathfence.Request{Key: "it"})
		if err != nil {
			t.Fatal(err)
		}
		permit.Release(pathfence.OK)
	}
	waits.Observe(pathfence.Decision{Class: "it", Outcome: "late", Waited: 2 * time.Second})
	text, err := testutil.CollectAndFormat(waits, expfmt.TypeTextPlain, "pathfence_wait_seconds")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`pathfence_wait_seconds_count{class="it",outcome="granted"} 2`,
		`pathfence_wait_seconds_sum{class="it",outcome="late"} 2`,
		`pathfence_wait_seconds_bucket{class="it",outcome="late",le="1"} 0`,
		`pathfence_wait_seconds_bucket{class="it",outcome="late",le="2.5"} 1`,
	} {
		if !strings.Contains(string(text), want+"\n") {
			t.Errorf("it says\n%s\nwithout %s", text, want)
		}
	}
}
