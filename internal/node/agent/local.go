package agent

import (
	"io"
	"log/slog"
	"os"
	"path"

	"temper.dev/temper/internal/base/cgroup"
	"temper.dev/temper/internal/base/host"
	"temper.dev/temper/internal/node/enforce"
)

// NewLocal makes an agent for the node at root, of its configuration alone, whose scx_temper is the program at
// loaderPath; stderr gets the words of both.
func NewLocal(root host.Root, configPath, loaderPath string, stderr io.Writer) (*Agent, error) {
	log := slog.New(slog.NewTextHandler(stderr, nil))
	source, err := NewFileSource(root, configPath, MustBeThere, log)
	if err != nil {
		return nil, err
	}
	return NewWith(root, source, loaderPath, log, stderr)
}

// NewWith makes an agent for the node at root that follows source.
func NewWith(root host.Root, source Source, loaderPath string, log *slog.Logger, stderr io.Writer) (*Agent, error) {
	folder := path.Dir(SafeModeFile)
	if err := os.MkdirAll(root.Path(folder), 0o755); err != nil {
		log.Warn(SafeModeFile+" is looked for every "+resyncEvery.String()+" only", "error", err)
	}
	watcher, err := cgroup.NewWatcher(root, folder)
	if err != nil {
		return nil, err
	}
	a, err := New(root, source, localKernel(root, loaderPath, stderr), watcher, log)
	if err != nil {
		watcher.Close()
		return nil, err
	}
	return a, nil
}

func localKernel(root host.Root, loaderPath string, stderr io.Writer) Kernel {
	return Kernel{
		StartLoader: func(args []string) (Loader, error) {
			path, err := find(loaderPath)
			if err != nil {
				return nil, err
			}
			return enforce.Start(path, args, stderr)
		},
		OpenTiers: func() (enforce.TierMap, error) { return enforce.OpenTierMap(root.Pins()) },
		Detach:    func() error { return detach(root, loaderPath) },
		TryPins:   func() error { return enforce.TryPins(root) },
		CheckLoader: func(args []string) error {
			path, err := find(loaderPath)
			if err != nil {
				return err
			}
			return enforce.Check(path, args)
		},
	}
}

// find is scx_temper's path: the one given, or where it should be; asked each time, as it may be installed meanwhile.
func find(loaderPath string) (string, error) {
	if loaderPath != "" {
		return loaderPath, nil
	}
	return enforce.FindLoader()
}

// detach detaches a scheduler that was left pinned, if there is one.
func detach(root host.Root, loaderPath string) error {
	if !host.Exists(root.Pins()) {
		return nil
	}
	path, err := find(loaderPath)
	if err != nil {
		return err
	}
	return enforce.Detach(path, root.Pins())
}
