//go:build e2e

package e2e

import (
	"context"
	"os/exec"
	"path/filepath"
)

const (
	nodeName = "node"
	diskSize = "2G"
	memoryMB = "3072"
)

// node is a virtual machine with a real containerd and a real kubelet.
type node struct {
	*program // the emulator
	console  string
	command  []string
}

// startNode makes one that belongs to a cluster, and boots it.
func startNode(ctx context.Context, kubeconfig []byte) (*node, error) {
	parts, err := fetchParts(ctx)
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
	if err := build(ctx, "", "mke2fs", "-q", "-t", "ext4", "-m", "0", "-d", root, disk, diskSize); err != nil {
		return nil, err
	}
	if err := packInitrd(ctx, filepath.Join(*keep, "initrd.d"), initrd, parts); err != nil {
		return nil, err
	}
	n := &node{console: filepath.Join(*keep, "console.log")}
	// Its clock counts instructions, 1e9 a second of both CPUs together, and the host's time while both are idle: what the
	// node's own work takes is then as on a slow real one, however fast this host is just now (decision 37). One host thread,
	// which that needs: with several, a CPU may run code that the kernel has replaced, as it does whenever a scheduler is
	// attached, and the node dies of it (decision 11).
	n.command = []string{"qemu-system-x86_64",
		"-machine", "q35", "-accel", "tcg,thread=single", "-icount", "shift=0,sleep=on", "-cpu", "max", "-smp", "2", "-m", memoryMB,
		"-nodefaults", "-no-reboot", "-display", "none",
		"-kernel", parts.Vmlinuz, "-initrd", initrd,
		"-append", "console=ttyS0 quiet panic=-1 no_timer_check tsc=reliable cryptomgr.notests rdinit=/init",
		"-drive", "file=" + disk + ",if=none,id=disk,format=raw,cache=unsafe", "-device", "virtio-blk-pci,drive=disk",
		"-netdev", "user,id=net,hostfwd=tcp:" + nodeIP + ":10250-:10250", "-device", "virtio-net-pci,netdev=net,romfile=",
		"-device", "virtio-rng-pci", "-chardev", "file,id=console,append=on,path=" + n.console, "-serial", "chardev:console"}
	return n, n.start()
}

// start switches it on. When it reboots it goes off.
func (n *node) start() (err error) {
	n.program, err = launch(filepath.Join(*keep, "emulator.log"), exec.Command(n.command[0], n.command[1:]...))
	return err
}
