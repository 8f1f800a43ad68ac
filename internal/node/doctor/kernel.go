package doctor

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"

	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/base/host"
	"temper.dev/temper/internal/node/kernels"
)

func (n Node) kernel() Check {
	switch has, err := kernels.HasSchedExt(n.Release); {
	case err != nil:
		return warn("kernel", err.Error(), "check that it is "+kernels.First+" or later")
	case !has:
		return fail(exit.NoSchedExt, "kernel", n.Release+" is older than "+kernels.First+", the first with sched_ext", kernels.Cure)
	}
	return ok("kernel", n.Release)
}

func (n Node) schedExt() Check {
	const name = "sched_ext"
	if state, err := host.Read(n.Root.SchedExt("state")); err == nil {
		return ok(name, "in the kernel, state "+state)
	}
	found := n.Root.SchedExt("state") + " does not exist"
	if file, value := n.kernelConfig("CONFIG_SCHED_CLASS_EXT"); file != "" {
		found += ", and " + file + " says " + value
	}
	return fail(exit.NoSchedExt, name, found, kernels.Cure)
}

// kernelConfig looks an option up in the configuration that the kernel was built with,
// wherever the distribution keeps it; file is empty if it is nowhere.
func (n Node) kernelConfig(option string) (file, line string) {
	for _, file := range []string{"/proc/config.gz", "/boot/config-" + n.Release, "/lib/modules/" + n.Release + "/config"} {
		data, err := os.ReadFile(n.Root.Path(file))
		if err != nil {
			continue
		}
		if strings.HasSuffix(file, ".gz") {
			if data, err = gunzip(data); err != nil {
				continue
			}
		}
		for line := range strings.Lines(string(data)) {
			line = strings.TrimSpace(line)
			if strings.HasPrefix(line, option+"=") || line == "# "+option+" is not set" {
				return file, strings.TrimPrefix(line, "# ")
			}
		}
		return file, option + " is not there"
	}
	return "", ""
}

func gunzip(data []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

// isolation is about CPUs that the kernel's own scheduler leaves alone. Beside isolcpus= the kernel refuses every
// sched_ext scheduler; in 7.0, before this was mended, also beside isolated partitions of the cpuset controller.
func (n Node) isolation() Check {
	const name = "isolation"
	if cpus, err := host.Read(n.Root.Path("/sys/devices/system/cpu/isolated")); err == nil && cpus != "" {
		return fail(exit.IsolatedCPUs, name, "the kernel was booted with isolcpus="+cpus+", beside which it takes no sched_ext scheduler",
			"boot without isolcpus=, and set these CPUs aside by fence: in the configuration")
	}
	if cpus, err := host.Read(n.Root.Cgroup("/cpuset.cpus.isolated")); err == nil && cpus != "" && strings.HasPrefix(n.Release, "7.0.") {
		return warn(name, "CPUs "+cpus+" are in isolated cpuset partitions, beside which some kernels 7.0 take no sched_ext scheduler",
			"write member to cpuset.cpus.partition there if scx_temper is refused")
	}
	return ok(name, "no CPU is isolated")
}

func (n Node) lockdown() Check {
	const name = "lockdown"
	text, err := host.Read(n.Root.Path("/sys/kernel/security/lockdown"))
	switch there, _ := n.mounted("securityfs", "/sys/kernel/security"); {
	case err != nil && !there:
		return warn(name, "unknown: securityfs is not mounted", "mount -t securityfs securityfs /sys/kernel/security")
	case errors.Is(err, fs.ErrNotExist):
		return ok(name, "not in this kernel")
	case err != nil:
		return warn(name, "unknown: "+err.Error(), "run it as root")
	}
	if strings.Contains(text, "[confidentiality]") {
		return fail(exit.LoadFailed, name, "mode confidentiality forbids BPF programs to read kernel memory",
			"boot with lockdown=integrity, or with Secure Boot's lockdown off")
	}
	return ok(name, text)
}

// preemption only warns: every mode works, but in some an interrupted task runs on in the kernel. Lazy is as good as full
// while scx_temper is attached: its interrupts are not the lazy ones.
func (n Node) preemption() Check {
	const name = "preemption"
	mode := n.preemptionMode()
	switch mode {
	case "full", "rt":
		return ok(name, mode)
	case "lazy":
		return ok(name, "lazy, as in all of Temper's figures; full would help services while Temper is not attached")
	case "":
		return warn(name, "the mode is not to be seen", "mount debugfs (mount -t debugfs none /sys/kernel/debug) and look again as root")
	}
	return warn(name, "mode "+mode+": an interrupted background task may run on in the kernel until it reaches a preemption point",
		"echo full > /sys/kernel/debug/sched/preempt, and boot with preempt=full")
}

func (n Node) preemptionMode() string {
	// The mode in force stands in parentheses: "none voluntary (full) lazy".
	if text, err := host.Read(n.Root.Path("/sys/kernel/debug/sched/preempt")); err == nil {
		_, rest, _ := strings.Cut(text, "(")
		mode, _, _ := strings.Cut(rest, ")")
		return mode
	}
	if text, err := host.Read(n.Root.Path("/proc/cmdline")); err == nil {
		for word := range strings.FieldsSeq(text) {
			if mode, found := strings.CutPrefix(word, "preempt="); found {
				return mode
			}
		}
	}
	version, err := host.Read(n.Root.Path("/proc/version"))
	switch {
	case err == nil && strings.Contains(version, "PREEMPT_RT"):
		return "rt"
	case err == nil && strings.Contains(version, " PREEMPT "):
		return "full"
	}
	return ""
}
