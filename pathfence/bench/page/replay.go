package page

import (
	"encoding/json"
	"fmt"
	"strings"

	"temper.dev/temper/pathfence/bench/record"
)

// replay is the command that measures a record again.
func replay(r record.Record) (string, error) {
	var plan struct {
		Language     string   `json:"language"`
		Arms         []string `json:"arms"`
		Disturbances []string `json:"disturbances"`
		Repetitions  int      `json:"repetitions"`
	}
	text, err := json.Marshal(r.Plan)
	if err != nil {
		return "", err
	}
	if err := json.Unmarshal(text, &plan); err != nil {
		return "", fmt.Errorf("the record's plan: %w", err)
	}
	const built = "build/pathfence/bench/"
	words := []string{built + "bench"}
	if r.Machine.Lab {
		words = append(words, "lab --lab bin/temper-lab")
	}
	words = append(words, "--node "+built+"pathfence-bench-node")
	if plan.Language == "java" {
		words = append(words, "--java pathfence/bench/java/target/service.jar")
	}
	for _, arm := range plan.Arms {
		words = append(words, fmt.Sprintf("--arm %q", arm))
	}
	for _, d := range plan.Disturbances {
		words = append(words, fmt.Sprintf("--disturbance %q", d))
	}
	if len(r.Instructions) > 0 {
		words = append(words, "--instructions")
	}
	words = append(words, fmt.Sprintf("--repetitions %d --seed %d --json FILE", plan.Repetitions, r.Seed))
	return strings.Join(words, " "), nil
}
