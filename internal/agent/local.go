package agent

import (
	"io"
	"log/slog"

	"temper.dev/temper/internal/cgroup"
	"temper.dev/temper/internal/enforce"
	"temper.dev/temper/internal/host"
)

// NewLocal makes an agent for the node at root whose scx_temper is the program at loaderPath;
// stderr gets the words of both.
func NewLocal(root host.Root, configPath, loaderPath string, stderr io.Writer) (*Agent, error) {
	log := slog.New(slog.NewTextHandler(stderr, nil))
	watcher, err := cgroup.NewWatcher(root)
	if err != nil {
		return nil, err
	}
	find := func() (string, error) {
		if loaderPath != "" {
			return loaderPath, nil
		}
		return enforce.FindLoader() // each time: it may be installed meanwhile
	}
	kernel := Kernel{
		Start: func(args []string) (Loader, error) {
			path, err := find()
			if err != nil {
				return nil, err
			}
			return enforce.Start(path, args, stderr)
		},
		OpenTiers: func() (enforce.TierMap, error) { return enforce.OpenTierMap(root.Pins()) },
		Detach: func() error {
			if !host.Exists(root.Pins()) {
				return nil
			}
			path, err := find()
			if err != nil {
				return err
			}
			return enforce.Detach(path, root.Pins())
		},
	}
	a, err := New(root, configPath, kernel, watcher, log)
	if err != nil {
		watcher.Close()
		return nil, err
	}
	return a, nil
}
