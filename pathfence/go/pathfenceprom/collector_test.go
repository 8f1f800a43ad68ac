package pathfenceprom_test

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	pathfence "temper.dev/temper/pathfence/go"
	"temper.dev/temper/pathfence/go/pathfenceprom"
)

// The state and the metrics are those that Java and C++ are held to, too.
func TestExamples(t *testing.T) {
	said, err := os.ReadFile("../../spec/state/state.json")
	if err != nil {
		t.Fatal(err)
	}
	var state pathfence.State
	read := json.NewDecoder(bytes.NewReader(said))
	read.DisallowUnknownFields()
	if err := read.Decode(&state); err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(state)
	if err != nil {
		t.Fatal(err)
	}
	if want := bytes.TrimSpace(said); !bytes.Equal(again, want) {
		t.Errorf("the state is written as %s, want %s", again, want)
	}
	want, err := os.Open("../../spec/state/state.prom")
	if err != nil {
		t.Fatal(err)
	}
	defer want.Close()
	collector := pathfenceprom.Collector(func() pathfence.State { return state })
	if err := testutil.CollectAndCompare(collector, want); err != nil {
		t.Error(err)
	}
}
