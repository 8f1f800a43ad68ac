package enforce

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/base/tier"
)

const header = "../../../sched/intf.h"

// twins pairs each struct of intf.h with its Go type.
var twins = map[string]any{
	"temper_hist":       Hist{},
	"temper_tier_stats": TierStats{},
	"temper_stats":      Stats{},
	"temper_waits":      Waits{},
	"temper_control":    Control{},
	"temper_assignment": Assignment{},
	"temper_info":       Info{},
	"temper_limit":      Limit{},
	"temper_hog":        Hog{},
	"temper_exit_info":  ExitInfo{},
}

// Structs and constants that concern loader and BPF only.
var (
	structsWithoutTwin = map[string]bool{"temper_config": true, "temper_topology": true, "temper_look": true, "temper_rt_throttled": true}
	valuesWithoutTwin  = map[string]bool{"TEMPER_INTF_H": true, "TEMPER_MAX_CPUS": true}
)

// values pairs each enumerator and macro of intf.h with its Go constant.
var values = map[string]int{
	"TIER_SYSTEM": int(tier.System), "TIER_CRITICAL": int(tier.Critical), "TIER_STANDARD": int(tier.Standard),
	"TIER_BACKGROUND": int(tier.Background), "NR_TIERS": tier.Count,
	"LOAN_GAPS": LoanGaps, "LOAN_IDLE": LoanIdle, "LOAN_NEVER": LoanNever,
	"LIMITS_PACED": LimitsPaced, "LIMITS_GAP": LimitsGap, "LIMITS_FREEZE": LimitsFreeze, "LIMITS_IGNORE": LimitsIgnore,
	"WAIT_ANY_CPU": WaitAnyCPU, "WAIT_ONE_CPU": WaitOneCPU, "WAIT_LIMIT": WaitLimit, "WAIT_REAL_TIME": WaitRealTime, "NR_WAITS": WaitCauses,
	"TEMPER_WATCHDOG_MS": WatchdogMs, "TEMPER_ABI": ABI, "TEMPER_MAX_CGROUPS": MaxCgroups, "TEMPER_MAX_LEVELS": MaxLevels, "TEMPER_HIST_BUCKETS": HistBuckets, "TEMPER_MARKS": Marks,
	"TEMPER_OK": exit.OK, "TEMPER_FAILED": exit.Failed, "TEMPER_USAGE": exit.Usage, "TEMPER_NOT_ROOT": exit.NotRoot,
	"TEMPER_NO_SCHED_EXT": exit.NoSchedExt, "TEMPER_BAD_BTF": exit.BadBTF, "TEMPER_OTHER_SCHEDULER": exit.OtherScheduler,
	"TEMPER_LIMITS_PRESENT": exit.LimitsPresent, "TEMPER_LOAD_FAILED": exit.LoadFailed, "TEMPER_CONFIG": exit.Config,
	"TEMPER_NO_CGROUP": exit.NoCgroup, "TEMPER_EJECTED": exit.Ejected, "TEMPER_NO_DISK": exit.NoDisk,
	"TEMPER_NO_NETWORK": exit.NoNetwork, "TEMPER_EXIT_HOTPLUG": exit.Hotplug, "TEMPER_ISOLATED_CPUS": exit.IsolatedCPUs, "TEMPER_INTERRUPTED": exit.Interrupted,
}

var (
	comment    = regexp.MustCompile(`(?s)/\*.*?\*/`)
	structBody = regexp.MustCompile(`(?s)struct (\w+) \{(.*?)\};`)
	fieldName  = regexp.MustCompile(`(\w+)(?:\[[^]]+\])?;`)
	constName  = regexp.MustCompile(`(?m)^\s*([A-Z][A-Z0-9_]+) = |^#define (TEMPER_[A-Z0-9_]+) `)
)

// TestLayout compares the whole of intf.h with this package: what the header has and Go lacks fails too.
func TestLayout(t *testing.T) {
	source, err := os.ReadFile(header)
	if err != nil {
		t.Fatal(err)
	}
	text := comment.ReplaceAllString(string(source), "")
	probe, want := []string{}, []string{}

	for _, m := range constName.FindAllStringSubmatch(text, -1) {
		name := m[1] + m[2]
		if valuesWithoutTwin[name] {
			continue
		}
		if name == "TEMPER_OPS_NAME" {
			probe = append(probe, `printf("ops %s\n", TEMPER_OPS_NAME);`)
			want = append(want, "ops "+OpsName)
			continue
		}
		value, ok := values[name]
		if !ok {
			t.Errorf("intf.h has %s, Go has no twin of it", name)
		}
		probe = append(probe, fmt.Sprintf(`printf("%s %%lld\n", (long long)%s);`, name, name))
		want = append(want, fmt.Sprintf("%s %d", name, value))
	}
	structs := structBody.FindAllStringSubmatch(text, -1)
	if want := len(twins) + len(structsWithoutTwin); len(structs) != want {
		t.Errorf("intf.h has %d structs, Go knows %d", len(structs), want)
	}
	for _, m := range structs {
		if structsWithoutTwin[m[1]] {
			continue
		}
		p, w := compareStruct(t, m[1], m[2])
		probe, want = append(probe, p...), append(want, w...)
	}
	if got := runC(t, probe); got != strings.Join(want, "\n") {
		t.Errorf("C says\n%s\nGo says\n%s", got, strings.Join(want, "\n"))
	}
}

func compareStruct(t *testing.T, name, body string) (probe, want []string) {
	twin, ok := twins[name]
	if !ok {
		t.Errorf("intf.h has struct %s, Go has no twin of it", name)
		return nil, nil
	}
	typ := reflect.TypeOf(twin)
	probe = append(probe, fmt.Sprintf(`printf("%s %%zu\n", sizeof(struct %s));`, name, name))
	want = append(want, fmt.Sprintf("%s %d", name, typ.Size()))
	fields := fieldName.FindAllStringSubmatch(body, -1)
	if len(fields) != typ.NumField() {
		t.Fatalf("struct %s has %d fields in C, %d in Go", name, len(fields), typ.NumField())
	}
	for i, m := range fields {
		field := typ.Field(i)
		if plain := strings.ReplaceAll(m[1], "_", ""); !strings.EqualFold(plain, field.Name) {
			t.Errorf("struct %s: field %d is %s in C, %s in Go", name, i, m[1], field.Name)
		}
		probe = append(probe, fmt.Sprintf(`printf("%s.%s %%zu %%zu\n", offsetof(struct %s, %s), sizeof(((struct %s *)0)->%s));`,
			name, m[1], name, m[1], name, m[1]))
		want = append(want, fmt.Sprintf("%s.%s %d %d", name, m[1], field.Offset, field.Type.Size()))
	}
	return probe, want
}

func runC(t *testing.T, statements []string) string {
	dir := t.TempDir()
	path, err := filepath.Abs(header)
	if err != nil {
		t.Fatal(err)
	}
	source := fmt.Sprintf("#include <stddef.h>\n#include <stdio.h>\n#include %q\nint main(void) {\n%s\n}\n", path, strings.Join(statements, "\n"))
	if err := os.WriteFile(filepath.Join(dir, "probe.c"), []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "probe")
	if out, err := exec.Command("gcc", "-Wall", "-Werror", "-o", binary, filepath.Join(dir, "probe.c")).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	out, err := exec.Command(binary).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// Of a node, each figure is the sum or the maximum of its CPUs': none is left out.
func TestFiguresOfCPUsAreAddedUp(t *testing.T) {
	var one, sum Stats
	ones := func(v reflect.Value) {
		switch v.Kind() {
		case reflect.Uint64, reflect.Uint32:
			v.SetUint(1)
		default:
			t.Fatalf("this test knows no figure of kind %s", v.Kind())
		}
	}
	visit(reflect.ValueOf(&one).Elem(), "", func(_ string, v reflect.Value) { ones(v) })
	sum.Add(one)
	visit(reflect.ValueOf(&sum).Elem(), "Stats", func(name string, v reflect.Value) {
		if v.Uint() != 1 {
			t.Errorf("%s of one CPU that has 1 is %d, want 1", name, v.Uint())
		}
	})
}

// visit calls f with each figure in a struct or an array, by its name.
func visit(v reflect.Value, name string, f func(name string, v reflect.Value)) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				visit(v.Field(i), name+"."+v.Type().Field(i).Name, f)
			}
		}
	case reflect.Array:
		for i := range v.Len() {
			visit(v.Index(i), fmt.Sprintf("%s[%d]", name, i), f)
		}
	default:
		f(name, v)
	}
}
