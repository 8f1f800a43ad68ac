//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	"temper.dev/temper/lab/cache"
	"temper.dev/temper/lab/kernels"
	"temper.dev/temper/lab/nodeparts"
)

const mostBuild = 2 * time.Minute

// nodePrograms are in the node's /bin, but for the plugins of its network.
var (
	nodePrograms = []string{"containerd", "containerd-shim-runc-v2", "ctr", "runc", "kubelet"}
	plugins      = []string{"ptp", "host-local", "loopback"}
	modules      = []string{"virtio_blk", "virtio_net", "net_failover", "failover", "overlay", "veth", "inet_diag", "tcp_diag"}
)

// nodeParts are what of the distribution a node is made of.
type nodeParts struct {
	*nodeparts.Parts
	apparmor, systemd map[string]string // files here, by their place on the node; none on a node without systemd
}

func fetchParts(ctx context.Context) (*nodeParts, error) {
	c, err := cache.Default()
	if err != nil {
		return nil, err
	}
	say := func(what string) { fmt.Fprintln(os.Stderr, what) }
	parts := &nodeParts{}
	if parts.Parts, err = nodeparts.Fetch(ctx, c, kernels.DefaultSeries, modules, say); err != nil {
		return nil, err
	}
	if parts.apparmor, err = nodeparts.AppArmor(ctx, c, say); err == nil && *systemd {
		parts.systemd, err = nodeparts.Systemd(ctx, c, say)
	}
	return parts, err
}

// fillRoot makes the node's file system.
func fillRoot(root string, parts *nodeParts, kubeconfig []byte) error {
	files := map[string]string{
		"node/setup":                    "testdata/setup",
		"node/import":                   "testdata/import",
		"node/kubelet":                  "testdata/kubelet",
		"bin/busybox":                   parts.Busybox,
		"etc/cni/net.d/10-ptp.conflist": "testdata/cni.conflist",
		"etc/kubernetes/kubelet.yaml":   "testdata/kubelet.yaml",
	}
	for _, name := range nodePrograms {
		files["bin/"+name] = filepath.Join(*programs, name)
	}
	for _, name := range plugins {
		files["opt/cni/bin/"+name] = filepath.Join(*programs, name)
	}
	for name, path := range parts.Modules {
		files["modules/"+name+".ko"] = path
	}
	maps.Copy(files, parts.apparmor)
	if err := firstProcess(root, files, parts.systemd); err != nil {
		return err
	}
	// The last is empty, and profiles include it.
	for _, dir := range []string{"proc", "sys", "dev", "run", "tmp", "root", "var/log", "var/lib/kubelet", "etc/containerd", "etc/apparmor.d/tunables/xdg-user-dirs.d"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			return err
		}
	}
	if err := place(root, files); err != nil {
		return err
	}
	containerd, err := os.ReadFile("testdata/containerd.toml")
	if err != nil {
		return err
	}
	for name, text := range map[string]string{
		"etc/containerd/config.toml": strings.Replace(string(containerd), "SystemdCgroup = false", fmt.Sprintf("SystemdCgroup = %t", len(parts.systemd) > 0), 1),
		"etc/kubernetes/kubeconfig":  string(kubeconfig),
		"etc/passwd":                 "root:x:0:0:root:/root:/bin/sh\n",
		"etc/group":                  "root:x:0:\n",
		"etc/hosts":                  "127.0.0.1 localhost " + nodeName + "\n",
		"etc/resolv.conf":            "",
		"etc/machine-id":             "0123456789abcdef0123456789abcdef\n",
	} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// firstProcess has the node start with systemd, which makes the pods' cgroups then, or with a script.
func firstProcess(root string, files, systemd map[string]string) error {
	if len(systemd) == 0 {
		files["init"] = "testdata/init"
		return nil
	}
	maps.Copy(files, systemd)
	units, err := filepath.Glob("testdata/systemd/*")
	if err != nil {
		return err
	}
	for _, unit := range units {
		files["etc/systemd/system/"+filepath.Base(unit)] = unit
	}
	return errors.Join(os.MkdirAll(root, 0o755), os.Symlink("/lib/systemd/systemd", filepath.Join(root, "init")))
}

// addImages makes what pods run, beside Temper: busybox; what says which tier it is in; and what holds a pod's namespaces,
// which the runtime starts first.
func addImages(ctx context.Context, dir, busybox string) error {
	if err := place(dir, map[string]string{"temper.tar": filepath.Join(*images, "temper.tar")}); err != nil {
		return err
	}
	for name, args := range map[string][]string{
		"busybox": {busybox},
		"pause":   {busybox, "--", "tail", "-f", "/dev/null"},
		"tierof":  {filepath.Join(*images, "tierof")},
	} {
		args = append([]string{"temper.dev/" + name + ":e2e", filepath.Join(dir, name+".tar")}, args...)
		if err := build(ctx, "", *imageTool, args...); err != nil {
			return err
		}
	}
	return nil
}

// place puts files of the host where they are wanted, as programs: on a node of tests nobody minds.
func place(root string, files map[string]string) error {
	for to, from := range files {
		to = filepath.Join(root, to)
		data, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(to, data, fs.FileMode(0o755)); err != nil {
			return err
		}
	}
	return nil
}

// packInitrd makes what the kernel starts with, which only finds the disk.
func packInitrd(ctx context.Context, dir, to string, parts *nodeParts) error {
	if err := place(dir, map[string]string{"init": "testdata/initrd", "bin/busybox": parts.Busybox, "virtio_blk.ko": parts.Modules["virtio_blk"]}); err != nil {
		return err
	}
	for _, name := range []string{"dev", "root"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			return err
		}
	}
	return build(ctx, dir, parts.Busybox, "sh", "-c", `"$0" find . | "$0" cpio -o -H newc >"$1"`, parts.Busybox, to)
}
