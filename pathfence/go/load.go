package pathfence

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"sigs.k8s.io/json"

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
		_, err = core.New(said, 0) // it knows what is valid
	}
	if err != nil && file != "" {
		err = fmt.Errorf("%s: %w", file, err)
	}
	if err != nil {
		return Config{}, fmt.Errorf("pathfence: %w", err)
	}
	return configOf(said), nil
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
		return said, errors.Unwrap(err) // it names the file, as the caller does
	}
	strict, err := json.UnmarshalStrict(text, &said)
	return said, errors.Join(append(strict, err)...)
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
// closed. It looks at the file once a second, and reads it at the first look. What is not valid leaves in force what is, and State
// has the reason. Told, if it is not nil, has the outcome of each reading: nil, or why it is not in force.
func (f *Fence) Watch(file string, told func(error)) {
	go func() {
		look := time.NewTicker(watchEvery)
		defer look.Stop()
		var seen os.FileInfo
		for first := true; ; first = false {
			select {
			case <-look.C:
			case <-f.ended:
				return
			}
			now, _ := os.Stat(named(file)) // nil: there is none, which reading it tells
			if !first && sameVersion(seen, now) {
				continue
			}
			seen = now
			if err := f.reloadFrom(file); told != nil {
				told(err)
			}
		}
	}()
}

func sameVersion(a, b os.FileInfo) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

func (f *Fence) reloadFrom(file string) error {
	config, err := LoadConfig(file)
	if err == nil {
		err = f.Reload(config)
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
