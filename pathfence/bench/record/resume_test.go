package record

import (
	"testing"

	"temper.dev/temper/internal/base/exit"
)

// A record of the same plan, seed, build and machine is gone on with; any other is refused.
func TestResume(t *testing.T) {
	type plan struct {
		Arms []string `json:"arms"`
	}
	now := Record{Seed: 1, Plan: plan{[]string{Fence}}, Machine: Machine{Kernel: "6.12", CPUs: 2, Hashes: map[string]string{"node": "a"}}}
	begun := func(change func(*Record)) Record {
		r := now
		r.Plan = plain(now.Plan) // as a file has it
		r.Machine.Hashes = map[string]string{"node": "a"}
		r.Instructions = map[string]float64{Fence: 1}
		r.Rows = []Row{{Repetition: 1}}
		change(&r)
		return r
	}
	same := now
	if err := same.Resume(begun(func(*Record) {})); err != nil || len(same.Rows) != 1 || same.Instructions == nil {
		t.Errorf("%v: %+v", err, same)
	}
	for what, change := range map[string]func(*Record){
		"seed":           func(r *Record) { r.Seed = 2 },
		"program":        func(r *Record) { r.Machine.Hashes["node"] = "b" },
		"plan":           func(r *Record) { r.Plan = plain(plan{[]string{Shared}}) },
		"kernel":         func(r *Record) { r.Machine.Kernel = "6.18" },
		"number of CPUs": func(r *Record) { r.Machine.CPUs = 4 },
		"machine":        func(r *Record) { r.Machine.Lab = true },
	} {
		other := now
		if err := other.Resume(begun(change)); exit.StatusOf(err) != exit.Usage || len(other.Rows) != 0 {
			t.Errorf("another %s: %v, %+v", what, err, other.Rows)
		}
	}

	// Only its guests know the lab's kernel.
	lab := now
	lab.Machine = Machine{CPUs: 3, Lab: true}
	if err := lab.Resume(begun(func(r *Record) { r.Machine = Machine{Kernel: "6.18", CPUs: 3, Lab: true} })); err != nil || lab.Machine.Kernel != "6.18" {
		t.Errorf("%v: %+v", err, lab.Machine)
	}
}
