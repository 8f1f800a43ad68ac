//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"temper.dev/temper/lab"
)

const (
	nodeName  = "node"
	diskSize  = "2G"
	memoryMB  = "3072"
	mostBuild = 2 * time.Minute
)

// nodePrograms are in the node's /bin, but for the plugins of its network.
var (
	nodePrograms = []string{"containerd", "containerd-shim-runc-v2", "ctr", "runc", "kubelet"}
	plugins      = []string{"ptp", "host-local", "loopback"}
	modules      = []string{"virtio_blk", "virtio_net", "net_failover", "failover", "overlay", "veth"}
)

// node is a virtual machine with a real containerd and a real kubelet.
type node struct {
	*program
	console string
}

// parts are what of the distribution a node is made of.
func parts(ctx context.Context) (*lab.NodeParts, error) {
	cache, err := lab.DefaultCache()
	if err != nil {
		return nil, err
	}
	return lab.FetchNodeParts(ctx, cache, lab.DefaultSeries, modules, func(what string) { fmt.Fprintln(os.Stderr, what) })
}

// startNode boots one that belongs to a cluster.
func startNode(ctx context.Context, kubeconfig []byte) (*node, error) {
	parts, err := parts(ctx)
	if err != nil {
		return nil, err
	}
	root, disk, initrd := filepath.Join(*keep, "root"), filepath.Join(*keep, "disk"), filepath.Join(*keep, "initrd")
	if err := fillRoot(root, parts, kubeconfig); err != nil {
		return nil, err
	}
	if err := addImages(ctx, filepath.Join(root, "images"), parts.Busybox); err != nil {
		return nil, err
	}
	if err := build(ctx, "", "mke2fs", "-q", "-t", "ext4", "-O", "^has_journal", "-m", "0", "-d", root, disk, diskSize); err != nil {
		return nil, err
	}
	if err := packInitrd(ctx, filepath.Join(*keep, "initrd.d"), initrd, parts); err != nil {
		return nil, err
	}
	n := &node{console: filepath.Join(*keep, "console.log")}
	// One host thread: with several, a CPU may run code that the kernel has replaced, as it does whenever a scheduler is
	// attached, and the node dies of it (decision 11).
	n.program, err = launch(filepath.Join(*keep, "emulator.log"), exec.Command("qemu-system-x86_64",
		"-machine", "q35", "-accel", "tcg,thread=single", "-cpu", "max", "-smp", "2", "-m", memoryMB,
		"-nodefaults", "-no-reboot", "-display", "none",
		"-kernel", parts.Vmlinuz, "-initrd", initrd,
		"-append", "console=ttyS0 quiet panic=-1 no_timer_check tsc=reliable cryptomgr.notests rdinit=/init",
		"-drive", "file="+disk+",if=none,id=disk,format=raw,cache=unsafe", "-device", "virtio-blk-pci,drive=disk",
		"-netdev", "user,id=net,hostfwd=tcp:"+nodeIP+":10250-:10250", "-device", "virtio-net-pci,netdev=net,romfile=",
		"-device", "virtio-rng-pci", "-serial", "file:"+n.console))
	return n, err
}

// fillRoot makes the node's file system.
func fillRoot(root string, parts *lab.NodeParts, kubeconfig []byte) error {
	files := map[string]string{
		"init":                          "testdata/init",
		"bin/busybox":                   parts.Busybox,
		"etc/containerd/config.toml":    "testdata/containerd.toml",
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
	for _, dir := range []string{"proc", "sys", "dev", "run", "tmp", "root", "var/log", "var/lib/kubelet"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			return err
		}
	}
	if err := place(root, files); err != nil {
		return err
	}
	for name, text := range map[string]string{
		"etc/kubernetes/kubeconfig": string(kubeconfig),
		"etc/passwd":                "root:x:0:0:root:/root:/bin/sh\n",
		"etc/group":                 "root:x:0:\n",
		"etc/hosts":                 "127.0.0.1 localhost " + nodeName + "\n",
		"etc/resolv.conf":           "",
		"etc/machine-id":            "0123456789abcdef0123456789abcdef\n",
	} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// addImages makes what pods run, beside Temper: busybox; and what holds a pod's namespaces, which the runtime starts first.
func addImages(ctx context.Context, dir, busybox string) error {
	if err := place(dir, map[string]string{"temper.tar": filepath.Join(*images, "temper.tar")}); err != nil {
		return err
	}
	for name, args := range map[string][]string{"busybox": nil, "pause": {"--", "tail", "-f", "/dev/null"}} {
		args = append([]string{"temper.dev/" + name + ":e2e", filepath.Join(dir, name+".tar"), busybox}, args...)
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
func packInitrd(ctx context.Context, dir, to string, parts *lab.NodeParts) error {
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
