package apt

import (
	"os"
	"testing"

	"temper.dev/temper/internal/base/exit"
)

func TestFindMirror(t *testing.T) {
	for _, c := range []struct{ name, host, env, want string }{
		{"deb822, with comments and continued lines", "debian12", "", "http://mirror.example/debian"},
		{"the operator's word comes first", "debian12", "http://near.example/d/", "http://near.example/d"},
		{"Ubuntu has none of its own: debootstrap's", "ubuntu", "", "http://default.example/debian"},
		{"vendors, comments, media and disabled entries do not count", "vendors", "", "http://proxy.example/remote-debian"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := findMirror(os.DirFS("testdata/"+c.host), func(string) string { return c.env })
			if err != nil || got != c.want {
				t.Errorf("got %q, %v; want %q", got, err, c.want)
			}
		})
	}
}

func TestFindMirrorSaysWhatToDo(t *testing.T) {
	_, err := findMirror(os.DirFS(t.TempDir()), func(string) string { return "" })
	if exit.StatusOf(err) != exit.Config {
		t.Errorf("got %v", err)
	}
}
