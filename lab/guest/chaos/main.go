// Command chaos attacks the guest that it runs in, and prints what it saw as one line of JSON.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"

	"temper.dev/temper/lab/chaos"
)

func main() {
	seed := flag.Int64("seed", 1, "what is done, and when")
	operations := flag.Int("operations", 300, "how much is done")
	fast := flag.Bool("fast", false, "the machine's time is its host's")
	soak := flag.Duration("soak", 0, "instead: critical work on all CPUs for so long")
	flag.Parse()
	print(chaos.Run(chaos.Config{
		Seed: *seed, Operations: *operations, Soak: *soak, Fast: *fast,
		OnHang: func(r chaos.Report) { print(r); os.Exit(0) },
	}))
}

func print(r chaos.Report) {
	if err := json.NewEncoder(os.Stdout).Encode(r); err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(1)
	}
}
