package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path"
	"slices"

	"temper.dev/temper/internal/base/host"
	"temper.dev/temper/internal/node/config"
	"temper.dev/temper/internal/node/run"
)

const sourceRun = "run"

// FileSource is a node's own configuration, the commands of temper run, and the file that asks for safe mode.
type FileSource struct {
	root        host.Root
	path        string // of the configuration
	absent      Absent
	log         *slog.Logger
	cfg         *config.Config
	units       map[string]string // cgroup by unit
	unitErrors  map[string]string // why a unit's cgroup could not be asked for, by unit
	reloadError string            // why the configuration was refused at the last reload
}

// Absent is what it means that there is no configuration.
type Absent int

// On a node of a cluster the cluster may say it all.
const (
	MustBeThere Absent = iota
	MayBeMissing
)

// NewFileSource reads the configuration at path.
func NewFileSource(root host.Root, path string, absent Absent, log *slog.Logger) (*FileSource, error) {
	s := &FileSource{root: root, path: path, absent: absent, log: log}
	var err error
	s.cfg, err = s.load()
	return s, err
}

func (s *FileSource) load() (*config.Config, error) {
	if s.absent == MayBeMissing && !host.Exists(s.path) {
		return config.Parse(nil)
	}
	return config.Load(s.path)
}

// Changed never receives: the watcher sees what changes, but for the configuration.
func (s *FileSource) Changed() <-chan struct{} { return nil }

// Reload reads the configuration again.
func (s *FileSource) Reload() error {
	cfg, err := s.load()
	if err != nil {
		s.reloadError = "the old configuration stays in force: " + err.Error()
		return err
	}
	s.cfg, s.reloadError = cfg, ""
	s.log.Info("configuration reloaded", "file", s.path)
	return nil
}

// Refresh asks for the cgroups of the configured units. Where there is no answer the one before holds: a service must not lose
// its tier because systemd is busy.
func (s *FileSource) Refresh() {
	before := s.units
	s.units, s.unitErrors = map[string]string{}, map[string]string{}
	for unit := range s.cfg.Units {
		cg, err := unitCgroup(s.root, unit)
		if err != nil {
			s.log.Warn("cannot find the cgroup of a unit", "unit", unit, "error", err)
			cg, s.unitErrors[unit] = before[unit], err.Error()
		}
		s.units[unit] = cg
	}
}

// Look names the configured cgroups, and those of temper run.
func (s *FileSource) Look() Wanted {
	w := Wanted{Config: s.cfg, File: s.path, Off: s.safeMode(), Parents: []string{run.Slice}}
	if s.reloadError != "" {
		w.Problems = append(w.Problems, s.reloadError)
	}
	for _, cg := range slices.Sorted(maps.Keys(s.cfg.Cgroups)) {
		w.Add(Member{Cgroup: cg, Tier: s.cfg.Cgroups[cg], Source: "config"})
	}
	for _, unit := range slices.Sorted(maps.Keys(s.cfg.Units)) {
		if cg := s.units[unit]; cg != "" {
			w.Add(Member{Cgroup: cg, Tier: s.cfg.Units[unit], Source: unit})
		}
		if why := s.unitErrors[unit]; why != "" {
			w.Problems = append(w.Problems, host.Printable("the cgroup of "+unit+" cannot be asked for, and what was known before holds: "+why))
		}
	}
	// The commands of temper run carry their tier in their cgroup's name.
	entries, _ := os.ReadDir(s.root.Cgroup(run.Slice)) // missing: nothing was run yet
	for _, entry := range entries {
		if t, ok := run.TierOf(entry.Name()); ok && entry.IsDir() {
			w.Add(Member{Cgroup: path.Join(run.Slice, entry.Name()), Tier: t, Source: sourceRun})
		}
	}
	return w
}

// safeMode is whether the file asks for it. One that cannot be looked at might.
func (s *FileSource) safeMode() *Off { return SafeMode(s.root) }

// SafeMode is what the file on a node asks for; nil: nothing.
func SafeMode(root host.Root) *Off {
	text, err := host.Read(root.Path(SafeModeFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		text = err.Error()
	case text == "":
		text = "it does not say why"
	}
	return &Off{Reason: OffByFile, Message: fmt.Sprintf("safe mode: %s exists (%s)", SafeModeFile, text)}
}
