package agent

import (
	"context"
	"fmt"
	"os/exec"
	"path"
	"strings"
	"time"

	"temper.dev/temper/internal/base/cgroup"
	"temper.dev/temper/internal/base/host"
)

// unitCgroup finds the cgroup of a systemd unit. Where systemd runs it is asked, and for a unit that
// is not running the answer is the cgroup that it will get. Elsewhere it is the directory of that name
// in the cgroup tree or, while there is none, where systemd would make it: so that status shows whose name was mistyped.
func unitCgroup(root host.Root, unit string) (string, error) {
	if !host.Exists(root.Path("/run/systemd/system")) {
		return findUnit(root, unit)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, "systemctl", "show", "-p", "ControlGroup", "-p", "Slice", "--", unit).Output()
	if err != nil {
		return "", fmt.Errorf("systemctl show %s: %w", unit, err)
	}
	return cgroupOf(unit, string(out)), nil
}

// cgroupOf reads systemctl's answer.
func cgroupOf(unit, answer string) string {
	property := map[string]string{}
	for line := range strings.Lines(answer) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		property[key] = value
	}
	if cg := property["ControlGroup"]; cg != "" && cg != "/" {
		return cg
	}
	if strings.HasSuffix(unit, ".slice") {
		return slicePath(unit)
	}
	slice := property["Slice"]
	if slice == "" {
		slice = "system.slice"
	}
	return path.Join(slicePath(slice), unit)
}

// slicePath: a-b.slice lies in a.slice.
func slicePath(slice string) string {
	if slice == "-.slice" {
		return "/"
	}
	result, prefix := "/", ""
	for part := range strings.SplitSeq(strings.TrimSuffix(slice, ".slice"), "-") {
		prefix += part
		result = path.Join(result, prefix+".slice")
		prefix += "-"
	}
	return result
}

func findUnit(root host.Root, unit string) (string, error) {
	found, err := cgroup.Find(root, unit)
	if err != nil {
		return "", err
	}
	if len(found) == 0 {
		return cgroupOf(unit, ""), nil
	}
	if len(found) > 1 {
		return "", fmt.Errorf("unit %s: systemd does not run, and several cgroups have this name: %s", unit, strings.Join(found, ", "))
	}
	return found[0], nil
}
