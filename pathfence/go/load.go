package pathfence

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strconv"
	"time"

	strictjson "sigs.k8s.io/json"

	"temper.dev/temper/pathfence/go/core"
)

// LoadConfig reads a configuration from a JSON file with the keys of ../spec/algorithm.md#configuration; file "" is the one that
// PATHFENCE_CONFIG names, and none where it names none. PATHFENCE_WORKERS and PATHFENCE_OFF (1 or 0) come on top. Service and
// OnDecision are in no file.
func LoadConfig(file string) (Config, error) {
	file = named(file)
	said, err := readConfig(file)
	if err == nil {
		err = readEnvironment(&said)
	}
	if err == nil {
		err = inFile(file, configOf(said).checkKeys())
	}
	if err == nil {
		_, err = core.New(said, 0) // it knows what is valid
		err = blamed(file, err)
	}
	if err != nil {
		return Config{}, fmt.Errorf("pathfence: %w", err)
	}
	return configOf(said), nil
}

// blamed names what is wrong: the file, or the environment where that is what said it.
func blamed(file string, err error) error {
	var bounds *core.BoundsError
	switch {
	case errors.As(err, &bounds) && bounds.Name == "workers" && os.Getenv("PATHFENCE_WORKERS") != "":
		return fmt.Errorf("PATHFENCE_WORKERS: %w", err)
	case err != nil && file == "":
		return fmt.Errorf("no file, and PATHFENCE_CONFIG and PATHFENCE_WORKERS are not set: %w", err)
	}
	return inFile(file, err)
}

// inFile names the file that is wrong.
func inFile(file string, err error) error {
	if file == "" || err == nil {
		return err
	}
	return fmt.Errorf("%s: %w", file, err)
}

func named(file string) string {
	if file == "" {
		return os.Getenv("PATHFENCE_CONFIG")
	}
	return file
}

func readConfig(file string) (said core.Config, err error) {
	if file == "" {
		return said, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return said, inFile(file, errors.Unwrap(err)) // it names the file, too
	}
	strict, err := strictjson.UnmarshalStrict(text, &said)
	return said, inFile(file, errors.Join(append(strict, inLine(text, err))...))
}

// inLine says where a text is no configuration. The errors of the strict reader are of a package that nobody else sees, so the
// plain one is asked again.
func inLine(text []byte, err error) error {
	if err == nil {
		return nil
	}
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	line := func(offset int64) int { return 1 + bytes.Count(text[:offset], []byte("\n")) }
	plain := json.Unmarshal(text, new(core.Config))
	switch {
	case errors.As(plain, &syntax):
		return fmt.Errorf("line %d: %w", line(syntax.Offset), err)
	case errors.As(plain, &kind):
		return fmt.Errorf("line %d: %s must be %s, not %s", line(kind.Offset), cmp.Or(kind.Field, "the whole"), inJSON(kind.Type.Kind()), kind.Value)
	}
	return err
}

// inJSON is what a value of a kind is there.
func inJSON(kind reflect.Kind) string {
	switch kind {
	case reflect.Bool:
		return "true or false"
	case reflect.Int64:
		return "a whole number"
	case reflect.Slice:
		return "a list"
	case reflect.Struct:
		return "an object"
	default:
		return "a string"
	}
}

func readEnvironment(said *core.Config) (err error) {
	if v := os.Getenv("PATHFENCE_WORKERS"); v != "" {
		if said.Workers, err = strconv.ParseInt(v, 10, 64); err != nil {
			return fmt.Errorf("PATHFENCE_WORKERS is %q; it must be a whole number", v)
		}
	}
	switch v := os.Getenv("PATHFENCE_OFF"); v {
	case "":
	case "0", "1":
		said.Off = v == "1"
	default:
		return fmt.Errorf("PATHFENCE_OFF is %q; it must be 0 or 1", v)
	}
	return nil
}

func configOf(said core.Config) Config {
	c := Config{
		Workers: int(said.Workers), Target: time.Duration(said.Target), Off: said.Off,
		Window: time.Duration(said.Window), Grace: time.Duration(said.Grace), GammaPermille: int(said.Gamma), QueueMax: int(said.Queue),
		Stall: time.Duration(said.Stall), Panic: time.Duration(said.Panic), UnknownBuckets: int(said.Buckets), without: said.Without,
	}
	for _, class := range said.Classes {
		c.Classes = append(c.Classes, Class{
			Name: class.Name, Keys: class.Keys, Weight: int(class.Weight), Target: time.Duration(class.Target),
			Limit: int(class.Limit), Hold: time.Duration(class.Hold),
		})
	}
	return c
}

const watchEvery = time.Second

// Watch puts a file's configuration in force, as LoadConfig reads it, each time that the file has changed, until the fence is
// closed. It looks at the file once a second, and reads it at the first look: what code has changed in a configuration that was
// loaded, other than Service and OnDecision, is gone then. What is not valid leaves in force what is; State has the reason, and it is
// read again at each look. Told, if it is not nil, has what came of each change: nil, or why the file is not in force. It is
// called by a goroutine of its own, perhaps once more while the fence is closed.
func (f *Fence) Watch(file string, told func(error)) {
	go func() {
		look := time.NewTicker(watchEvery)
		defer look.Stop()
		w := watched{fence: f, file: named(file), told: told}
		for {
			select {
			case <-look.C:
				w.look()
			case <-f.ended:
				return
			}
		}
	}()
}

// watched is a file that is put in force.
type watched struct {
	fence *Fence
	file  string
	told  func(error)
	read  bool   // at all
	seen  []byte // as it was read last: its time and size may stay the same when it changes
	wrong string // what was told of it; "": it is in force
}

func (w *watched) look() {
	now, _ := os.ReadFile(w.file) // nil where that fails, which loading it tells
	changed := !w.read || !bytes.Equal(w.seen, now)
	if !changed && w.wrong == "" {
		return
	}
	w.read, w.seen = true, now
	err := w.fence.reloadFrom(w.file)
	before := w.wrong
	w.wrong = ""
	if err != nil {
		w.wrong = err.Error()
	}
	if w.told != nil && (changed || w.wrong != before) {
		w.told(err)
	}
}

func (f *Fence) reloadFrom(file string) error {
	config, err := LoadConfig(file)
	if err == nil {
		err = inFile(file, f.Reload(config))
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.watchError = nil
	if err != nil {
		why := err.Error()
		f.watchError = &why
	}
	return err
}
