package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/path/fenceprofile"
	"temper.dev/temper/internal/path/fencetop"
)

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

const config = `{"workers": 4, "target_ns": 60000000000, "classes": [{"name": "items", "keys": ["GET:/items"]}, {"name": "orders", "weight": 200}]}`

// points of a class whose goodput rises up to 2 at a time.
const points = "1,250,4\n2,500,4\n3,500,6\n4,500,8\n"

func stateOf(t *testing.T, off bool) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(fencetop.State{Workers: 4, Off: off})
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestProfileWritesTheConfiguration(t *testing.T) {
	file, csv := write(t, "pathfence.json", config), write(t, "orders.csv", points)
	service := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer service.Close()
	out, err := run(t.Context(), "profile", "--config", file, "--class", "items="+service.URL, "--class", "orders="+csv, "--length", "1s", "--state", stateOf(t, true), "--out", file, "--json")
	if err != nil {
		t.Fatal(err)
	}
	var curves []fenceprofile.Profile
	if err := json.Unmarshal([]byte(out), &curves); err != nil || len(curves) != 2 || len(curves[0].Steps) != 4 || curves[1].Limit != 3 {
		t.Errorf("%v: %s", err, out)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"weight": 200`, `"limit": 3`, `"hold_ns": 4000000`, `"GET:/items"`, `"workers": 4`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s is missing in %s", want, text)
		}
	}
	// What was written is a configuration, too; without --out it is printed.
	again, err := run(t.Context(), "profile", "--config", file, "--class", "orders="+csv)
	if err != nil || !strings.Contains(again, `"limit": 3`) {
		t.Errorf("%v: %s", err, again)
	}
}

func TestProfileRefuses(t *testing.T) {
	file, csv := write(t, "pathfence.json", config), write(t, "orders.csv", points)
	for what, c := range map[string]struct {
		args   []string
		status int
	}{
		"no configuration":         {[]string{"--class", "orders=" + csv}, exit.Usage},
		"no classes":               {[]string{"--config", file}, exit.Usage},
		"an unknown class":         {[]string{"--config", file, "--class", "carts=" + csv}, exit.Usage},
		"a class without a source": {[]string{"--config", file, "--class", "orders"}, exit.Usage},
		"JSON without a file":      {[]string{"--config", file, "--class", "orders=" + csv, "--json"}, exit.Usage},
		"too short":                {[]string{"--config", file, "--class", "orders=" + csv, "--length", "1ms"}, exit.Usage},
		"a bad address":            {[]string{"--config", file, "--class", "orders=" + csv, "--state", "localhost"}, exit.Usage},
		"a key that is not known":  {[]string{"--config", write(t, "c", `{"worker": 4}`), "--class", "orders=" + csv}, exit.Config},
		"a bad configuration":      {[]string{"--config", write(t, "c", `{"workers": 0, "classes": [{"name": "orders"}]}`), "--class", "orders=" + csv}, exit.Config},
		"a fence that is on":       {[]string{"--config", file, "--class", "orders=" + csv, "--state", stateOf(t, false)}, exit.Failed},
		"no points":                {[]string{"--config", file, "--class", "orders=" + csv + ".none"}, exit.Failed},
		"too few points":           {[]string{"--config", file, "--class", "orders=" + write(t, "p", "1,1,1\n")}, exit.Failed},
	} {
		if out, err := run(t.Context(), append([]string{"profile"}, c.args...)...); exit.StatusOf(err) != c.status || out != "" {
			t.Errorf("%s: status %d, %v, %q", what, exit.StatusOf(err), err, out)
		}
	}
}
