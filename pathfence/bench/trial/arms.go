package trial

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"temper.dev/temper/pathfence/bench/record"
	"temper.dev/temper/pathfence/go/core"
)

// Arm is a way to decide who gets a worker.
type Arm struct {
	Name string
	// flags of the service that is started, beside its workers and downstreams.
	flags func(Server) []string
}

// Server is a service that is about to be started: the scale with its workers and its paths' rates, and these paths.
type Server struct {
	Scale
	Paths []string
	// It is in C++, and others that have the arm are in Java.
	BesideJava bool
}

var (
	sharedPool    = Arm{record.Shared, func(Server) []string { return nil }}
	wholeFence    = Arm{record.Fence, fence(core.Parts{})}
	learnedFence  = Arm{record.Learned, func(s Server) []string { return flags(plain(s)) }}
	fenceVariants = []Arm{
		{"fence without lending", fence(core.Parts{NoLend: true})},
		{"fence without protection", fence(core.Parts{NoProtect: true})},
		{"fence without shedding", fence(core.Parts{NoShed: true})},
		{"fence without newest-first", fence(core.Parts{NoNewest: true})},
		{"fence without learning", fence(core.Parts{NoLearn: true})},
		{"fence without excitation", fence(core.Parts{NoExcite: true})},
		{"fence without panic", fence(core.Parts{NoPanic: true})},
	}
)

// Languages are what services are written in, by name.
var Languages = map[string]Language{
	"cpp": {
		Table: []Arm{
			sharedPool,
			{"shared with expiry", func(s Server) []string { return []string{"--expire-ms", fmt.Sprint(s.Target.Milliseconds())} }},
			{"shared with shedding", shedding},
			{"unbounded", asynchronous},
			{"unbounded with shedding", func(s Server) []string { return append(asynchronous(s), most(s, s.usual())...) }},
			{"static bulkhead", func(Server) []string { return []string{"--bulkhead"} }},
			{"static with shedding", staticShedding},
			wholeFence,
		},
		quick: []string{record.Shared, "static with shedding", record.Fence},
	},
	"java": {
		Table: []Arm{
			sharedPool,
			admission("concurrency-limits, Vegas", "vegas", shedding),
			admission("concurrency-limits, Gradient2", "gradient2", shedding),
			admission("resilience4j bulkhead", "bulkhead", staticShedding),
			wholeFence,
		},
		quick: []string{record.Shared, "concurrency-limits, Vegas", record.Fence},
	},
}

// Language is what can be measured of services in one language.
type Language struct {
	Table []Arm // of the table
	quick []string
}

// All are the arms of the table, the fence that learns its classes, and the fence without each of its parts.
func (l Language) All() []Arm { return slices.Concat(l.Table, []Arm{learnedFence}, fenceVariants) }

// Quick are the arms of a look.
func (l Language) Quick() []Arm {
	return slices.DeleteFunc(slices.Clone(l.Table), func(a Arm) bool { return !slices.Contains(l.quick, a.Name) })
}

// admission is what lets requests in, by one of the names that the Java service knows; and what comes closest to it for
// services in C++ beside it.
func admission(arm, name string, besideJava func(Server) []string) Arm {
	return Arm{arm, func(s Server) []string {
		if s.BesideJava {
			return besideJava(s)
		}
		return []string{"--admission", name}
	}}
}

// What figures are held against: the innocent path with the shared pool to itself, and no service at all.
var (
	alone    = Arm{record.Alone, sharedPool.flags}
	capacity = Arm{record.Capacity, nil}
)

// asynchronous has more workers than clients ever wait for at a time.
func asynchronous(Server) []string { return []string{"--workers", "1024"} }

// shedding lets as many wait as there are workers.
func shedding(s Server) []string { return most(s, 2*s.Workers) }

// staticShedding is that with an equal part of the workers for each path.
func staticShedding(s Server) []string { return append(shedding(s), "--bulkhead") }

// most lets so many wait or be under way; the others are refused, and so is what has waited past the target.
func most(s Server, requests int) []string {
	return []string{"--most", fmt.Sprint(requests), "--target-ms", fmt.Sprint(s.Target.Milliseconds())}
}

// usual is how many requests come within the target: with more under way, they take longer than that on average.
func (s Server) usual() int { return int((s.Innocent.Rate + s.Slowed.Rate) * s.Target.Seconds()) }

// fence has a class for each path.
func fence(without core.Parts) func(Server) []string {
	return func(s Server) []string {
		config := classed(s)
		config.Without = without
		return flags(config)
	}
}

// plain is a fence of the service's size.
func plain(s Server) core.Config {
	return core.Config{Workers: int64(s.Workers), Target: s.Target.Nanoseconds()}
}

// classed is that with a class for each path.
func classed(s Server) core.Config {
	config := plain(s)
	for _, path := range s.Paths {
		config.Classes = append(config.Classes, core.ClassConfig{Name: path, Keys: []string{path}})
	}
	return config
}

func flags(fence core.Config) []string {
	text, err := json.Marshal(fence)
	if err != nil {
		panic(err) // a configuration holds nothing that JSON cannot
	}
	return []string{"--fence", string(text)}
}

// service is what the arm's service is started with; downstreams are a path's ports, in order.
func (a Arm) service(s Server, downstreams map[string][]int) []string {
	line := []string{"--workers", fmt.Sprint(s.Workers)}
	for _, path := range s.Paths {
		for _, port := range downstreams[path] {
			line = append(line, "--downstream", fmt.Sprintf("%s=%d", path, port))
		}
	}
	return append(line, a.flags(s)...)
}

func (a Arm) fenced() bool { return strings.HasPrefix(a.Name, record.Fence) }

// onward makes a fenced service pass on what travels with a request to the services below it, which are fenced, too.
func (a Arm) onward() []string {
	if a.fenced() {
		return []string{"--onward"}
	}
	return nil
}

// named gives a fenced service a name in what travels.
func (a Arm) named(service string) []string {
	if a.fenced() {
		return []string{"--name", inTravel(service)}
	}
	return nil
}

// inTravel is a member's name as a key may be written.
func inTravel(name string) string { return strings.ReplaceAll(name, " ", "-") }
