package machine

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"temper.dev/temper/lab/plan"
)

func TestFollow(t *testing.T) {
	path := filepath.Join(t.TempDir(), dataFile)
	ended := make(chan struct{})
	close(ended)
	for _, c := range []struct {
		name, text, kinds, fails string
		done                     bool
	}{
		{name: "done", text: `{"kind":"log","text":"a"}` + "\n" + `{"kind":"done"}` + "\n" + `{"kind":"log"}` + "\n", kinds: "log done", done: true},
		{name: "died", text: `{"kind":"log"}` + "\n" + `{"kind":"do`, kinds: "log"},
		{name: "failed", text: `{"kind":"error","text":"no memory"}` + "\n", fails: "the guest failed: no memory"},
		{name: "garbage", text: "Oops: 0002\n", fails: "no event"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			var kinds []string
			done, err := follow(path, ended, func(e plan.Event) error { kinds = append(kinds, e.Kind); return nil })
			if done != c.done || strings.Join(kinds, " ") != c.kinds {
				t.Errorf("done %v, events %q", done, kinds)
			}
			if (err != nil) != (c.fails != "") || err != nil && !strings.Contains(err.Error(), c.fails) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestLineReaderJoinsPieces(t *testing.T) {
	r := lineReader{}
	var got []string
	for _, chunk := range []string{"a", "b\nc", "", "\n\nd"} {
		for _, line := range r.add([]byte(chunk)) {
			got = append(got, string(line))
		}
	}
	if !slices.Equal(got, []string{"ab", "c", ""}) {
		t.Errorf("got %q", got)
	}
}
