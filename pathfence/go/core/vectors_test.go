package core_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"temper.dev/temper/pathfence/go/core"
)

var writeVectors = flag.Bool("write-vectors", false, "write ../../spec/vectors instead of comparing with it")

const folder = "../../spec/vectors"

// encode writes a vector with one step a line, so that a change shows as the lines that it changes.
func encode(v core.Vector) []byte {
	var b bytes.Buffer
	part := func(x any) string {
		j, err := json.Marshal(x)
		if err != nil {
			panic(err)
		}
		return string(j)
	}
	b.WriteString("{\"name\":" + part(v.Name) + ",\n\"about\":" + part(v.About) + ",\n\"config\":" + part(v.Config) + ",\n\"steps\":[\n")
	for i, s := range v.Steps {
		if i > 0 {
			b.WriteString(",\n")
		}
		b.WriteString(part(s))
	}
	b.WriteString("\n]}\n")
	return b.Bytes()
}

func TestVectorsAreUpToDate(t *testing.T) {
	want := map[string][]byte{}
	for _, v := range vectors() {
		want[v.Name+".json"] = encode(v)
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if want[filepath.Base(f)] == nil {
			if !*writeVectors {
				t.Errorf("%s belongs to no scenario; run 'make pathfence-vectors'", f)
			} else if err := os.Remove(f); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, w := range want {
		f := filepath.Join(folder, name)
		if *writeVectors {
			if err := os.WriteFile(f, w, 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		got, err := os.ReadFile(f)
		if err != nil {
			t.Error(err)
		} else if !bytes.Equal(got, w) {
			t.Errorf("%s is not what the model decides; run 'make pathfence-vectors' and look at the difference", name)
		}
	}
}

// A file says all that a replay needs: read back, it leads to the same decisions.
func TestVectorsReplay(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no vectors: %v", err)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var v core.Vector
		d := json.NewDecoder(bytes.NewReader(b))
		d.DisallowUnknownFields()
		if err := d.Decode(&v); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		f, err := core.New(v.Config, 0)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for i, want := range v.Steps {
			got, err := f.Play(want)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got.Then, want.Then) || !slices.Equal(got.States, want.States) || got.Refused != want.Refused {
				t.Fatalf("%s: step %d (%+v) gave %+v", name, i, want, got)
			}
		}
	}
}

// Every decision that the fence can take, with each of its reasons, is in some vector.
func TestVectorsCoverEveryDecision(t *testing.T) {
	missing := map[string]bool{"grant": true, "grant lent": true, "grant inherited": true, "grant resumed": true, "stop panic": true}
	for _, reason := range strings.Fields("expired late full depth") {
		missing["shed "+reason] = true
	}
	for _, reason := range strings.Fields("stall late undo knee thrash room probe unused") {
		missing["limit "+reason] = true
	}
	for _, v := range vectors() {
		for _, s := range v.Steps {
			for _, e := range s.Then {
				what := e.Do
				if e.Lent {
					what += " lent"
				}
				if e.Reason != "" {
					what += " " + e.Reason
				}
				delete(missing, what)
			}
		}
	}
	for what := range missing {
		t.Errorf("no vector shows %q", what)
	}
}
