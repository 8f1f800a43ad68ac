package run

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"temper.dev/temper/lab/assets"
	"temper.dev/temper/lab/kernels"
	"temper.dev/temper/lab/libraries"
	"temper.dev/temper/lab/plan"
)

// usesTemper tells whether any of the arms attaches scx_temper.
func usesTemper(arms []string) bool {
	return slices.ContainsFunc(arms, func(name string) bool {
		arm, _ := plan.FindArm(name)
		return arm.Scheduler == plan.Temper
	})
}

// attachedBy is what the arms attach, with what that needs: the path in the guest, and on the host.
func (l *Lab) attachedBy(ctx context.Context, arms []string) (map[string]string, error) {
	files := map[string]string{}
	for _, name := range arms {
		arm, _ := plan.FindArm(name)
		var err error
		switch {
		case arm.Scheduler == plan.Temper:
			files["bin/scx_temper"], err = l.assets.File(assets.Scheduler)
		case len(arm.Command) > 0:
			err = l.addPeer(ctx, arm, files)
		}
		if err != nil {
			return nil, err
		}
	}
	return files, nil
}

// addPeer adds a scheduler of others: with the libraries of this host, which built it; the files that its command
// names; and the kernel's configuration, which their loaders look up.
func (l *Lab) addPeer(ctx context.Context, arm plan.Arm, files map[string]string) error {
	program, err := l.assets.File(assets.Peers + "bin/" + arm.Command[0])
	if err != nil {
		return err
	}
	needed, _, err := libraries.ClosureOf("/", libraries.Place{Guest: "bin/" + arm.Command[0], Host: program})
	if err != nil {
		return err
	}
	maps.Copy(files, needed)
	for _, word := range arm.Command[1:] {
		if _, name, ok := strings.Cut(word, "/etc/"); ok {
			if files["etc/"+name], err = l.assets.File(assets.Peers + name); err != nil {
				return err
			}
		}
	}
	files[filepath.Join("boot", "config-"+l.Kernel.Release)], err = kernels.Config(ctx, l.cache, l.Kernel.Release)
	return err
}
