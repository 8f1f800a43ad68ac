package main

import (
	"os"
	"path/filepath"
	"testing"

	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/evidence/bench"
	"temper.dev/temper/lab/chaos"
)

func TestAnAttackGoesOnWhereItsRecordEnds(t *testing.T) {
	attack := chaos.Record{Kernel: "6.18", CPUs: 3, Operations: 100, Hashes: bench.Hashes{BPF: "1"}}
	path := filepath.Join(t.TempDir(), "record.json")
	if r, err := recordedAttack(path, attack); err != nil || len(r.Seeds) != 0 {
		t.Errorf("without a file: %v, %v", r, err)
	}
	earlier := attack
	earlier.Add(chaos.Report{Seed: 7})
	if err := bench.WriteJSON(path, earlier); err != nil {
		t.Fatal(err)
	}
	if r, err := recordedAttack(path, attack); err != nil || !r.Has(7) || r.Has(8) {
		t.Errorf("%v, %v", r, err)
	}
	for name, change := range map[string]func(*chaos.Record){
		"scheduler":  func(r *chaos.Record) { r.Hashes.BPF = "2" },
		"kernel":     func(r *chaos.Record) { r.Kernel = "7.0" },
		"machine":    func(r *chaos.Record) { r.Fast = true },
		"CPUs":       func(r *chaos.Record) { r.CPUs = 6 },
		"operations": func(r *chaos.Record) { r.Operations = 300 },
		"length":     func(r *chaos.Record) { r.SoakSeconds = 60 },
	} {
		other := attack
		change(&other)
		if _, err := recordedAttack(path, other); exit.StatusOf(err) != exit.Usage {
			t.Errorf("a record of another %s is taken: %v", name, err)
		}
	}
	if err := os.WriteFile(path, []byte("[]"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := recordedAttack(path, attack); exit.StatusOf(err) != exit.Usage {
		t.Errorf("a file that is no record is taken: %v", err)
	}
	if r, err := recordedAttack(os.DevNull, attack); err != nil || len(r.Seeds) != 0 {
		t.Errorf("a device: %v, %v", r, err)
	}
}
