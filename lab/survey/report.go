// Package survey says on which kernels the scheduler works, from what it and its tests print there.
package survey

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"temper.dev/temper/internal/base/exit"
)

// Report is what was found on one kernel.
type Report struct {
	Release  string         `json:"release"`            // as uname -r prints it
	Refused  string         `json:"refused,omitempty"`  // why the scheduler does not attach, in its own words
	Verified map[string]int `json:"verified,omitempty"` // instructions that the verifier looked at, by BPF program
	Passed   int            `json:"passed,omitempty"`   // functional tests
	Failed   []string       `json:"failed,omitempty"`   // the others, by name

	LostGuests int `json:"lost_guests,omitempty"` // that the emulator lost before, by a fault of its own
}

// Read reads what 'temper-lab survey --json' wrote.
func Read(file string) (reports []Report, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &reports); err != nil {
		return nil, exit.New(exit.Failed, "name a file that 'temper-lab survey --json' wrote", "%s is no survey: %w", file, err)
	}
	return reports, nil
}

// Merge puts what was found into a record: each report in the place of the older one of its kernel.
func Merge(record, found []Report) []Report {
	for _, r := range found {
		i := slices.IndexFunc(record, func(o Report) bool { return o.Release == r.Release })
		if i < 0 {
			record = append(record, r)
			continue
		}
		record[i] = r
	}
	return record
}

// Load tries to attach the scheduler on the kernel that runs. It leaves with status 0 if it could.
// Arguments of sh -c.
const Load = `scx_temper --verbose & loader=$!
until grep -qs enabled /sys/kernel/sched_ext/state; do kill -0 $loader 2>/dev/null || { wait $loader; exit; }; sleep 1; done
kill -INT $loader; wait $loader`

var (
	program  = regexp.MustCompile(`(?m)^libbpf: prog '(\w+)': -- BEGIN PROG LOAD LOG --`)
	verified = regexp.MustCompile(`(?m)^processed (\d+) insns `)
	series   = regexp.MustCompile(`^\d+\.\d+`)
	test     = regexp.MustCompile(`(?m)^--- (PASS|FAIL|SKIP): (\w+)`)
)

// Loaded reads what Load printed.
func (r *Report) Loaded(status int, output string) error {
	if status != 0 {
		r.Refused = reason(output)
		return nil
	}
	r.Verified = map[string]int{}
	starts := program.FindAllStringSubmatchIndex(output, -1)
	for i, m := range starts {
		end := len(output)
		if i+1 < len(starts) {
			end = starts[i+1][0]
		}
		n := verified.FindStringSubmatch(output[m[1]:end])
		if n == nil {
			return fmt.Errorf("%s: the verifier said nothing of %s", r.Release, output[m[2]:m[3]])
		}
		r.Verified[output[m[2]:m[3]]], _ = strconv.Atoi(n[1])
	}
	if len(r.Verified) == 0 {
		return fmt.Errorf("%s: the scheduler attached, and the verifier said nothing", r.Release)
	}
	return nil
}

// reason is what the loader said last of why it leaves.
func reason(output string) string {
	why := "the loader did not say why"
	for line := range strings.Lines(output) {
		if text, ok := strings.CutPrefix(line, "scx_temper: "); ok {
			why = strings.TrimSpace(text)
		}
	}
	return why
}

// Tested reads what the functional tests printed; what ended them early, if anything did, counts as a failure.
func (r *Report) Tested(output string, early error) {
	for _, m := range test.FindAllStringSubmatch(output, -1) {
		if m[1] == "PASS" {
			r.Passed++
		} else {
			r.Failed = append(r.Failed, m[2])
		}
	}
	if early != nil {
		why, _, _ := strings.Cut(early.Error(), "; its console") // a page of it fits into no table
		r.Failed = append(r.Failed, why)
	}
	if r.Passed == 0 && len(r.Failed) == 0 {
		r.Failed = append(r.Failed, "no test ran")
	}
}

// Total is the number of instructions that the verifier looked at.
func (r Report) Total() (n int) {
	for _, each := range r.Verified {
		n += each
	}
	return n
}

// Works tells whether the scheduler attaches, and no test failed.
func (r Report) Works() bool { return r.Refused == "" && len(r.Failed) == 0 }

// Skip is which tests do not belong to the functional ones, as -test.skip takes it: those of figures, of profiles, and of other
// machines.
const Skip = "^Test(Timed|Interrupted|Nightly|Topology|CoreScheduling|AppArmor)"

// Verdict is the report in a few words.
func (r Report) Verdict() string {
	switch {
	case r.Refused != "":
		return "refused: " + r.Refused
	case len(r.Failed) > 0:
		return "failed: " + strings.Join(r.Failed, ", ")
	case r.Passed == 0:
		return "attaches"
	}
	return "works"
}

// Write prints a table.
func Write(w io.Writer, reports []Report) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "KERNEL\tTESTS PASSED\tVERIFIED\t")
	for _, r := range reports {
		fmt.Fprintf(t, "%s\t%d\t%d\t%s\n", r.Release, r.Passed, r.Total(), r.Verdict())
	}
	return t.Flush()
}

// tolerance is by how much a program may become dearer to verify before somebody has to look: verification
// is most of the time that an attach takes, and the kernel gives up at a million instructions.
const tolerance = 1.10

// Check holds what was found against the record: what worked works, at the price that it had. A kernel
// that is not in the record is held against another of its series: archives move on.
func Check(found, record []Report) error {
	var worse []string
	for _, r := range found {
		i := slices.IndexFunc(record, func(o Report) bool { return o.Release == r.Release })
		if i < 0 {
			i = slices.IndexFunc(record, func(o Report) bool { return series.FindString(o.Release) == series.FindString(r.Release) })
		}
		if i < 0 {
			worse = append(worse, r.Release+": no kernel of its series is in the record")
			continue
		}
		old := record[i]
		if !r.Works() && old.Works() {
			worse = append(worse, r.Release+" "+r.Verdict())
		}
		for name, n := range r.Verified {
			if was := old.Verified[name]; float64(n) > tolerance*float64(was) {
				worse = append(worse, fmt.Sprintf("%s: the verifier looks at %d instructions for %s, and looked at %d", r.Release, n, name, was))
			}
		}
	}
	if len(worse) == 0 {
		return nil
	}
	slices.Sort(worse)
	return exit.New(exit.Failed, "find the cause, or record it anew with 'make kernels'", "worse than recorded:\n  %s", strings.Join(worse, "\n  "))
}
