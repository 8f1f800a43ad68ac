package workload

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"temper.dev/temper/lab/listening"
	"temper.dev/temper/lab/plan"
)

// proposed is what is proposed for a program, as text and as 'bench run' reads it.
func proposed(t *testing.T, p listening.Program, httpStatus int) (string, *File) {
	t.Helper()
	text, err := Propose(p, httpStatus)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "f.yaml")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := Read(file)
	if err != nil {
		t.Fatalf("what is proposed is refused: %v\n%s", err, text)
	}
	return text, f
}

func program(path string, command ...string) listening.Program {
	return listening.Program{Port: 8080, PID: 7, Path: path, Command: command, Folder: "/", Root: true}
}

func TestProposedCommands(t *testing.T) {
	folder := t.TempDir()
	link := filepath.Join(folder, "redis-server")
	real := filepath.Join(folder, "redis-check-rdb")
	if err := os.WriteFile(real, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(real, link); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name     string
		program  listening.Program
		workload string
		command  []string
		says     string
	}{
		{"of no package", program("/opt/shop/server", "./server", "-v"), "server", []string{"/opt/shop/server", "-v"}, ""},
		{"what YAML would take for something else", program("/opt/s", "s", "a, b", "8080", "null", `"`, "{x: y}", "# no", "é", "-", "true", "a: b", ""), "s",
			[]string{"/opt/s", "a, b", "8080", "null", `"`, "{x: y}", "# no", "é", "-", "true", "a: b", ""}, ""},
		{"an argument of two lines", program("/opt/s", "s", "a\nb\t<c>"), "s", []string{"/opt/s", "a\nb\t<c>"}, ""},
		{"a title in place of arguments", program("/opt/front", "front: master process"), "front", []string{"/opt/front"}, `The process shows "front: master process", and not what has started it`},
		{"a title that the lab knows", program("/opt/nginx", "nginx: master process"), "nginx", []string{"/opt/nginx", "-g", "daemon off;"}, "The process shows"},
		{"no arguments at all", program("/opt/front"), "front", []string{"/opt/front"}, `The process shows ""`},
		{"a name of one of several", program(real, "redis-server *:6379"), "redis-server", []string{real}, "The process shows"},
		{"one of the lab's own names", program("/opt/memcached", "memcached"), "my-memcached", []string{"/opt/memcached"}, ""},
		{"a name that is none", program("/opt/7_Z.x", "7_Z.x"), "z-x", []string{"/opt/7_Z.x"}, ""},
		{"nothing of a name", program("/opt/77", "77"), "service", []string{"/opt/77"}, ""},
		{"an interpreter", program("/opt/python3.13", "python3.13"), "python", []string{"/opt/python3.13"}, "What an interpreter loads by itself"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text, f := proposed(t, c.program, 200)
			if got := f.Services[0].Command; f.Name != c.workload || !slices.Equal(got, c.command) {
				t.Errorf("it is %s with %q, want %s with %q", f.Name, got, c.workload, c.command)
			}
			if !strings.Contains(text, c.says) {
				t.Errorf("it does not say %q:\n%s", c.says, text)
			}
		})
	}
}

func TestProposedFiles(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{"app.conf": "x", "data/a": "y", "other/b": "z"} {
		file := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(folder, "other"), filepath.Join(folder, "data", "link")); err != nil {
		t.Fatal(err)
	}
	large := filepath.Join(folder, "large")
	if err := os.WriteFile(large, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(large, mostBrought+1); err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(folder, "app.conf")
	data, other := filepath.Join(folder, "data"), filepath.Join(folder, "other")
	for _, c := range []struct {
		name, argument string
		want           []Item
		says           string
	}{
		{"from the root on", own, []Item{{Guest: own, Host: own}}, ""},
		{"from its folder on", "app.conf", []Item{{Guest: "/srv/s/app.conf", Host: own}}, ""},
		{"behind a =", "--config=" + own, []Item{{Guest: own, Host: own}}, ""},
		{"a flag of that name", "-app.conf", nil, ""},
		{"that is not there", "/nowhere/app.conf", nil, ""},
		{"a folder, with what its links lead to", "data", []Item{{Guest: "/srv/s/data", Host: data}, {Guest: other, Host: other}}, ""},
		{"too large", large, nil, "has more than 64 MB, and is left out"},
		{"of the kernel", "/proc/self/status", nil, ""},
		{"the root", "/", nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := program("/opt/s", "s", c.argument)
			p.Folder = folder
			text, f := proposed(t, p, 200)
			if got := f.Services[0].Files; !reflect.DeepEqual(got, c.want) {
				t.Errorf("it brings %+v, want %+v", got, c.want)
			}
			if !strings.Contains(text, c.says) {
				t.Errorf("it does not say %q:\n%s", c.says, text)
			}
		})
	}
}

func TestProposedClients(t *testing.T) {
	for _, c := range []struct {
		name, path string
		status     int
		want       plan.Client
		says       string
	}{
		{"what answers in HTTP", "/opt/s", 302, plan.Client{HTTP: &plan.HTTPClient{Host: "localhost:8080", Port: 8080, Target: "/", Connections: 32}}, "it answered 302 to GET /"},
		{"what has no such page", "/opt/s", 404, plan.Client{HTTP: &plan.HTTPClient{Host: "localhost:8080", Port: 8080, Target: "/", Connections: 32}}, "It answered 404 to GET /: write a path that it serves."},
		{"what speaks something else", "/opt/s", 0, plan.Client{HTTP: &plan.HTTPClient{Host: "localhost:8080", Port: 8080, Target: "/", Connections: 32}}, "Or bring a client of your own"},
		{"memcached", "/opt/memcached", 0, plan.Client{Memcached: &plan.MemcachedClient{Port: 8080}}, ""},
		{"redis", "/opt/redis-server", 0, plan.Client{Redis: &plan.RedisClient{Port: 8080, Connections: 32, Keys: 1000, ValueSize: 100, Writes: 0.1}}, ""},
		{"PostgreSQL", "/opt/postgres", 0, plan.Client{Postgres: &plan.PostgresClient{Port: 8080, Connections: 8, User: "postgres", Database: "postgres", Query: "select 1", Keys: 1000}}, "setup makes tables"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text, f := proposed(t, program(c.path, filepath.Base(c.path)), c.status)
			if !reflect.DeepEqual(f.Client, c.want) {
				t.Errorf("the client is %+v, want %+v", f.Client, c.want)
			}
			if !strings.Contains(text, c.says) {
				t.Errorf("it does not say %q:\n%s", c.says, text)
			}
		})
	}
}

func TestProposedSurroundings(t *testing.T) {
	p := program("/opt/s", "s")
	p.Root, p.Users, p.Calls = false, []string{"shop", "www-data"}, []string{"10.0.0.5:5432"}
	p.Variables = []string{"HOME", "LC_ALL", "PATH", "SHOP_KEY"}
	text, f := proposed(t, p, 200)
	if !f.Services[0].AsUser || !slices.Equal(f.Users, p.Users) {
		t.Errorf("as the user: %t, users %q; want true, %q", f.Services[0].AsUser, f.Users, p.Users)
	}
	for _, says := range []string{"It calls 10.0.0.5:5432, which the guest does not have", "# environment: {NAME: value} # here it has SHOP_KEY\n"} {
		if !strings.Contains(text, says) {
			t.Errorf("it does not say %q:\n%s", says, text)
		}
	}
}
