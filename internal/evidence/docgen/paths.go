package docgen

import (
	"fmt"
	"strings"

	"temper.dev/temper/test/paths"
)

// Paths is the page of how long the scheduler's programs may run.
func Paths() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# How long the programs run\n%sThe longest run of each BPF program, and of each function that a timer calls, in instructions; those of the kernel's functions that it calls and of interrupts are among them. "+
		"A test counts them on the deterministic machine of 3 CPUs (kernel 6.18): 10,000 background threads that are bound to two of these, 200 tasks that share a limit, and a critical task that comes and goes. "+
		"It fails where more than two runs of a program take longer than what stands here (`TestTimedLongestPaths`): those wait for a lock of the kernel. %d is the most for any. Programs that run once, as the scheduler or a cgroup comes or goes, are left out.\n\n"+
		"| program | instructions, at most | what bounds it |\n| --- | --- | --- |\n", notice, paths.Most)
	for _, p := range paths.Longest {
		fmt.Fprintf(&b, "| `%s` | %d | %s |\n", p.Program, p.Instructions, p.Bound)
	}
	b.WriteString("\nNot in that scene: a background task comes for the third CPU. To find it, that CPU's `temper_dispatch` passes all that stand ahead and are bound elsewhere, " +
		"about 14 instructions each, once or twice: 142,585 were seen. A timer that moves a task within that queue meanwhile waits for it ([decision 47](../decisions/0047-many-that-wait.md)).\n")
	return b.String()
}
