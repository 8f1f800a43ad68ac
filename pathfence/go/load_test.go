package pathfence_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	pathfence "temper.dev/temper/pathfence/go"
	"temper.dev/temper/pathfence/go/internal/fencetest"
)

// file has a text, put there as Kubernetes does: by another file that takes the name.
func file(t *testing.T, name, text string) string {
	t.Helper()
	next := name + ".next"
	if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, name); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestAConfigurationIsLoaded(t *testing.T) {
	const whole = `{"workers": 8, "target_ns": 250000000, "off": true, "window_ns": 50000000, "grace_ns": 10000000, "gamma_permille": 2000,
		"queue_max": 64, "stall_ns": 30000000, "panic_ns": 40000000, "unknown_buckets": 4,
		"classes": [{"name": "orders", "keys": ["GET:/orders/:id"], "weight": 50, "target_ns": 1000000000, "limit": 6, "hold_ns": 20000000}]}`
	all := pathfence.Config{
		Workers: 8, Target: 250 * time.Millisecond, Off: true, Window: 50 * time.Millisecond, Grace: 10 * time.Millisecond, GammaPermille: 2000,
		QueueMax: 64, Stall: 30 * time.Millisecond, Panic: 40 * time.Millisecond, UnknownBuckets: 4,
		Classes: []pathfence.Class{{Name: "orders", Keys: []string{"GET:/orders/:id"}, Weight: 50, Target: time.Second, Limit: 6, Hold: 20 * time.Millisecond}},
	}
	on := all
	on.Workers, on.Off = 12, false
	for _, c := range []struct {
		name, text  string
		environment map[string]string
		want        pathfence.Config
		says        string
	}{
		{"whole", whole, nil, all, ""},
		{"the environment comes on top", whole, map[string]string{"PATHFENCE_WORKERS": "12", "PATHFENCE_OFF": "0"}, on, ""},
		{"the environment alone", "", map[string]string{"PATHFENCE_WORKERS": "3"}, pathfence.Config{Workers: 3}, ""},
		{"nothing", "", nil, pathfence.Config{}, "pathfence: no file, and PATHFENCE_CONFIG and PATHFENCE_WORKERS are not set: workers is 0; it must be 1 to 4096"},
		{"a key that does not exist", `{"workers": 3, "worker": 4}`, nil, pathfence.Config{}, `config.json: unknown field "worker"`},
		{"a key in capitals", `{"Workers": 3}`, nil, pathfence.Config{}, `config.json: unknown field "Workers"`},
		{"a key twice", `{"workers": 3, "workers": 4}`, nil, pathfence.Config{}, `config.json: duplicate field "workers"`},
		{"a key of a class", `{"workers": 3, "classes": [{"name": "a", "wait": 4}]}`, nil, pathfence.Config{}, `config.json: unknown field "classes[0].wait"`},
		{"a text for a number", `{"workers": "3"}`, nil, pathfence.Config{}, "config.json: line 1: workers must be a whole number, not string"},
		{"a text for a list", "{\"workers\": 3,\n\"classes\": [{\"name\": \"a\",\n\"keys\": \"b\"}]}", nil, pathfence.Config{}, "config.json: line 3: classes.keys must be a list, not string"},
		{"a list for the whole", `[3]`, nil, pathfence.Config{}, "config.json: line 1: the whole must be an object, not array"},
		{"a comma too many", "{\n\"workers\": 3,\n}", nil, pathfence.Config{}, "config.json: line 3: invalid character '}'"},
		{"an empty file", " ", nil, pathfence.Config{}, "config.json: line 1: unexpected end of JSON input"},
		{"out of bounds", `{"workers": 5000}`, nil, pathfence.Config{}, "config.json: workers is 5000; it must be 1 to 4096"},
		{"a pattern for a key", `{"workers": 3, "classes": [{"name": "a", "keys": ["GET /orders/{id}"]}]}`, nil, pathfence.Config{}, `here "GET:/orders/:id"`},
		{"a profile's limit", `{"workers": 3, "classes": [{"name": "a", "limit": 5000}]}`, nil, pathfence.Config{}, "config.json: class a: limit is 5000; it must be 0 to 4096"},
		{"a profile's hold", `{"workers": 3, "classes": [{"name": "a", "hold_ns": -1}]}`, nil, pathfence.Config{}, "config.json: class a: hold_ns is -1; it must be 0 to 600000000000"},
		{"two objects", `{"workers": 3} {"workers": 4}`, nil, pathfence.Config{}, "config.json: line 1: invalid character '{' after top-level value"},
		{"workers that are no number", `{"workers": 3}`, map[string]string{"PATHFENCE_WORKERS": "many"}, pathfence.Config{}, `PATHFENCE_WORKERS is "many"; it must be a whole number`},
		{"workers in the environment that are out of bounds", `{"workers": 3}`, map[string]string{"PATHFENCE_WORKERS": "5000"}, pathfence.Config{}, "pathfence: PATHFENCE_WORKERS: workers is 5000; it must be 1 to 4096"},
		{"off that is no flag", `{"workers": 3}`, map[string]string{"PATHFENCE_OFF": "true"}, pathfence.Config{}, `PATHFENCE_OFF is "true"; it must be 0 or 1`},
		{"no such file", "", map[string]string{"PATHFENCE_CONFIG": "/nowhere/config.json"}, pathfence.Config{}, "pathfence: /nowhere/config.json: no such file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, name := range []string{"PATHFENCE_CONFIG", "PATHFENCE_WORKERS", "PATHFENCE_OFF"} {
				t.Setenv(name, c.environment[name])
			}
			from := ""
			if c.text != "" {
				from = file(t, filepath.Join(t.TempDir(), "config.json"), c.text)
			}
			got, err := pathfence.LoadConfig(from)
			if (err != nil) != (c.says != "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Fatalf("it gives the error %v, want %q", err, c.says)
			}
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("it gives %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestAWatchedFileIsPutInForce(t *testing.T) {
	name := file(t, filepath.Join(t.TempDir(), "config.json"), `{"workers": 3}`)
	config, err := pathfence.LoadConfig(name)
	if err != nil {
		t.Fatal(err)
	}
	fence, err := pathfence.New(config)
	if err != nil {
		t.Fatal(err)
	}
	defer fence.Close()
	file(t, name, `{"workers": 4}`) // before the first look
	told := make(chan error, 10)
	fence.Watch(name, func(err error) { told <- err })
	is := func(workers int64, wrong string) {
		t.Helper()
		fencetest.Awaits(t, fence, "the file is in force", func(now pathfence.State) bool {
			right := wrong == "" && now.WatchError == nil || wrong != "" && now.WatchError != nil && strings.Contains(*now.WatchError, wrong)
			return now.Workers == workers && right
		})
		if err := <-told; (err == nil) != (wrong == "") {
			t.Errorf("it tells %v, want %q", err, wrong)
		}
	}
	is(4, "")
	file(t, name, `{"workers": 0}`)
	is(4, name+": workers is 0")
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	is(4, name+": no such file")
	file(t, name, `{"workers": 5}`)
	is(5, "")
	// What was wrong beside the file may be right without a change of it.
	t.Setenv("PATHFENCE_OFF", "perhaps")
	file(t, name, `{"workers": 6}`)
	is(5, `pathfence: PATHFENCE_OFF is "perhaps"`)
	t.Setenv("PATHFENCE_OFF", "0")
	is(6, "")
	// Nor does a file have to look changed to be so.
	whole, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	same, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = same.WriteString(`{"workers": 7}`)
	if err := errors.Join(err, same.Close(), os.Chtimes(name, whole.ModTime(), whole.ModTime())); err != nil {
		t.Fatal(err)
	}
	is(7, "")
	select {
	case err := <-told:
		t.Errorf("it tells %v of a file that has not changed", err)
	default:
	}
}
