package lab

import (
	"os"
	"path/filepath"
	"strings"

	"temper.dev/temper/internal/base/exit"
)

// Assets is the folder that 'make build' fills: our own programs, for host and guest.
type Assets string

const (
	schedulerProgram = "bin/scx_temper"
	temperProgram    = "bin/temper"
	labProgram       = "bin/temper-lab"
	bpfObject        = "build/temper.bpf.o"
	guestInit        = "build/guest/init"
	chaosProgram     = "build/guest/chaos"
	churnProgram     = "build/guest/churn"
	goServiceProgram = "build/guest/goservice"
)

// jvmClasses are what Java's compiler makes of the JVM service. It is no part of 'make build', which needs no JDK.
var jvmClasses = []string{jvmFolder + "Service.class", jvmFolder + "Service$Item.class"}

const jvmFolder = "build/guest/jvmservice/"

// GuestPrograms are the load generators and tools of every guest.
var GuestPrograms = []string{"chain", "cost", "crowd", "lateness", "mcload", "preempt", "quantum", "reach", "readers", "resize", "share", "spin", "web"}

// DefaultAssets is the folder above the one that holds the running program.
func DefaultAssets() (Assets, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	if self, err = filepath.EvalSymlinks(self); err != nil {
		return "", err
	}
	return Assets(filepath.Dir(filepath.Dir(self))), nil
}

// file returns the path of something that was built, or says how to build it.
func (a Assets) file(name string) (string, error) {
	path := filepath.Join(string(a), name)
	if _, err := os.Stat(path); err != nil {
		if strings.HasPrefix(name, "build/peers/") {
			return "", exit.New(exit.Failed, "run 'make peers'", "the arm needs %s, which was not built", path)
		}
		if strings.HasPrefix(name, jvmFolder) {
			return "", exit.New(exit.Failed, "run 'make jvm-service', which needs javac", "the service needs %s, which was not built", path)
		}
		return "", exit.New(exit.Failed, "run 'make build', or name the folder it filled with --assets", "the lab needs %s, which was not built", path)
	}
	return path, nil
}
