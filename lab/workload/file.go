// Package workload reads a user's file of what is to be measured. What it does not know it refuses, with line and column.
package workload

import (
	"errors"
	"os"
	"path/filepath"

	"go.yaml.in/yaml/v3"

	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/lab/plan"
)

// File is a workload and how to measure it.
type File struct {
	Name     string
	Services []Service
	Client   plan.Client
	// ClientProgram is what has to be there for a client that is a command. nil: it is built in.
	ClientProgram *Program
	// Users are names that services know, of the user without privileges.
	Users []string
	// Background is what runs beside, in place of spinners. nil: those.
	Background *Background
	Rate       float64 // requests a second; 0: Load is given
	Load       float64 // fraction of measured saturation
	CPUs       int
	Arms       []string
	Steps      []int
	Seeds      []int64
	Seconds    float64
	WarmUp     float64
}

// Program is one that a user names, and what has to be there for it.
type Program struct {
	Name        string   // of its folder below plan.ServicesFolder
	Packages    []string // of Debian; the program is looked up in them, from the first on
	Folder      string   // of this host
	Command     []string
	Files       []Item
	Folders     []string // of the guest, empty ones that the program expects
	Environment []string

	At Place // of the command
}

// Who is what messages call it.
func (p Program) Who() string {
	if p.Name == plan.ClientName || p.Name == plan.BackgroundName {
		return "the " + p.Name
	}
	return "service " + p.Name
}

// Service is a program that clients ask.
type Service struct {
	Program
	Port   int
	AsUser bool // service, not root
}

// Background is a program that background workers run over and over.
type Background struct {
	Program
	Count   string // of plan's
	Counter string
}

// Item is a file or folder that a program wants in the guest: copied from Host, or with that Text.
type Item struct {
	Guest, Host, Text string
}

// Place is where something stands in the file.
type Place struct {
	File         string
	Line, Column int
}

// Read reads a file. Paths in it are relative to its own folder.
func Read(path string) (*File, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, exit.New(exit.Usage, "name a file as docs/start/workload.md shows one", "%w", err)
	}
	return parse(path, text)
}

func parse(path string, text []byte) (*File, error) {
	r := reader{path: path, folder: filepath.Dir(path)}
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return nil, exit.New(exit.Config, "", "%s: %w", path, err)
	}
	if len(document.Content) == 0 {
		return nil, exit.New(exit.Config, "write one as docs/start/workload.md shows it", "%s: %w", path, errors.New("the file is empty"))
	}
	f := &File{CPUs: 2, Arms: []string{"eevdf", "cpuidle", "temper"}, Steps: []int{0, 1, 2, 4, 8}, Seeds: []int64{1}, Seconds: 4, WarmUp: 6}
	if err := r.file(document.Content[0], f); err != nil {
		return nil, err
	}
	return f, nil
}

// Programs are all that the file names.
func (f *File) Programs() (all []Program) {
	for _, s := range f.Services {
		all = append(all, s.Program)
	}
	if f.ClientProgram != nil {
		all = append(all, *f.ClientProgram)
	}
	if f.Background != nil {
		all = append(all, f.Background.Program)
	}
	return all
}

// Plan is the ladder that the file asks for, of the first seed, where each program is at a path of the guest.
func (f *File) Plan(places map[string]string) plan.Plan {
	command := func(p Program) []string { return append([]string{places[p.Name]}, p.Command[1:]...) }
	w := &plan.Workload{Client: f.Client, Rate: f.Rate}
	for _, s := range f.Services {
		w.Services = append(w.Services, plan.Service{
			Name: s.Name, Command: command(s.Program), Environment: s.Environment, Port: s.Port, AsUser: s.AsUser,
		})
	}
	if p := f.ClientProgram; p != nil {
		c := *f.Client.Command
		c.Command, c.Environment = command(*p), p.Environment
		w.Client.Command = &c
	}
	if b := f.Background; b != nil {
		w.Background = &plan.Background{Command: command(b.Program), Environment: b.Environment, Count: b.Count, Counter: b.Counter}
	}
	return plan.Plan{
		Scenario: f.Name, Arms: f.Arms, Steps: f.Steps, Seed: f.Seeds[0], CPUs: f.CPUs, Seconds: f.Seconds, WarmUp: f.WarmUp,
		Load: f.Load, Quantum: plan.DefaultQuantum, Workload: w,
	}
}
