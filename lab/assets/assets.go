// Package assets names what 'make build' leaves: our own programs, for host and guest. The lab takes them as files.
// Where one is not there, it says which 'make' target builds it.
//
// What is Debian's is in packages kernels and userland.
package assets

import (
	"os"
	"path/filepath"
	"strings"

	"temper.dev/temper/internal/base/exit"
)

// Folder is the one that 'make build' fills.
type Folder string

// Paths in it.
const (
	Scheduler = "bin/scx_temper"
	Temper    = "bin/temper"
	Lab       = "bin/temper-lab"
	BPFObject = "build/temper.bpf.o"
	GuestInit = "build/guest/init"
	Chaos     = "build/guest/chaos"
	Churn     = "build/guest/churn"
	GoService = "build/guest/goservice"
)

// JVMClasses are what Java's compiler makes of the JVM service. It is no part of 'make build', which needs no JDK.
var JVMClasses = []string{jvmFolder + "Service.class", jvmFolder + "Service$Item.class"}

const jvmFolder = "build/guest/jvmservice/"

// Peers is the folder of what 'make peers' builds.
const Peers = "build/peers/"

// GuestPrograms are the load generators and tools of every guest.
var GuestPrograms = []string{"chain", "cost", "crowd", "lateness", "mcload", "preempt", "quantum", "reach", "readers", "resize", "share", "spin", "web"}

// Default is the folder above the one that holds the running program.
func Default() (Folder, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	if self, err = filepath.EvalSymlinks(self); err != nil {
		return "", err
	}
	return Folder(filepath.Dir(filepath.Dir(self))), nil
}

// File returns the path of something that was built, or says how to build it.
func (a Folder) File(name string) (string, error) {
	path := filepath.Join(string(a), name)
	if _, err := os.Stat(path); err != nil {
		if strings.HasPrefix(name, Peers) {
			return "", exit.New(exit.Failed, "run 'make peers'", "the arm needs %s, which was not built", path)
		}
		if strings.HasPrefix(name, jvmFolder) {
			return "", exit.New(exit.Failed, "run 'make jvm-service', which needs javac", "the service needs %s, which was not built", path)
		}
		return "", exit.New(exit.Failed, "run 'make build', or name the folder it filled with --assets", "the lab needs %s, which was not built", path)
	}
	return path, nil
}
