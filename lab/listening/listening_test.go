package listening

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Perl is essential in Debian, and its executable file is a package's.
const server = `use IO::Socket; my $s = IO::Socket::INET->new(Listen => 1, LocalAddr => "127.0.0.1"); $| = 1; print $s->sockport, "\n"; <STDIN>;`

// serve starts a program that listens, and returns its port.
func serve(t *testing.T, cmd *exec.Cmd) (port int) {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	var line [8]byte
	n, err := out.Read(line[:])
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range strings.TrimSpace(string(line[:n])) {
		port = 10*port + int(c-'0')
	}
	return port
}

func at(t *testing.T, port int) Program {
	t.Helper()
	found, err := Find()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range found.Programs {
		if p.Port == port {
			return p
		}
	}
	t.Fatalf("nothing is found on port %d: %+v", port, found)
	return Program{}
}

func TestAProgramOfAPackage(t *testing.T) {
	cmd := exec.Command("perl", "-e", server)
	cmd.Dir = t.TempDir()
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "SECRET=hush"}
	port := serve(t, cmd)
	p := at(t, port)
	if p.PID != cmd.Process.Pid || filepath.Base(p.Path) != "perl" || p.Package != "perl-base" || p.Folder != cmd.Dir || p.Contained {
		t.Errorf("it is %+v; want process %d, perl of perl-base, in %s", p, cmd.Process.Pid, cmd.Dir)
	}
	if want := []string{"perl", "-e", server}; !slices.Equal(p.Command, want) {
		t.Errorf("its command is %q, want %q", p.Command, want)
	}
	if want := []string{"PATH", "SECRET"}; !slices.Equal(p.Variables, want) {
		t.Errorf("its variables are %q, want %q", p.Variables, want)
	}
	if p.Root != (os.Geteuid() == 0) {
		t.Errorf("it is root's: %t; this test is: %t", p.Root, os.Geteuid() == 0)
	}
}

// What it calls is told, and its own clients are not.
func TestCalls(t *testing.T) {
	upstream, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer upstream.Close()
	to := upstream.Addr().String()
	port := serve(t, exec.Command("perl", "-e", `use IO::Socket; our $c = IO::Socket::INET->new("`+to+`") or die; `+server))
	client, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if p := at(t, port); !slices.Equal(p.Calls, []string{to}) {
		t.Errorf("it calls %q, want %s only", p.Calls, to)
	}
}

// Of those that share a socket, the one that started the others stands for all.
func TestTheFirstOfSeveral(t *testing.T) {
	cmd := exec.Command("perl", "-e", strings.Replace(server, "$| = 1;", "$| = 1; unless (fork) { <STDIN>; exit }", 1))
	port := serve(t, cmd)
	if p := at(t, port); p.PID != cmd.Process.Pid {
		t.Errorf("it is process %d, want %d", p.PID, cmd.Process.Pid)
	}
}

// A process with another root has other files.
func TestContained(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("only root may look")
		return
	}
	root := t.TempDir()
	for _, c := range []struct {
		name string
		cmd  *exec.Cmd
		want bool
	}{
		{"mounts of its own over the same root", exec.Command("unshare", "--mount", "perl", "-e", server), false},
		{"another root", exec.Command("perl", "-e", `use IO::Socket; chroot("`+root+`") or die; `+server), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if p := at(t, serve(t, c.cmd)); p.Contained != c.want {
				t.Errorf("it is contained: %t, want %t: %+v", p.Contained, c.want, p)
			}
		})
	}
}

func TestPackages(t *testing.T) {
	for _, c := range []struct{ path, want string }{
		{"/usr/bin/perl", "perl-base"},
		{"/bin/bash", "bash"},
		{"/usr/bin/bash", "bash"}, // its package knows it as /bin/bash
		{"/nowhere", ""},
	} {
		if got, err := PackageOf(c.path); got != c.want || err != nil {
			t.Errorf("%s is of %q (%v), want %q", c.path, got, err, c.want)
		}
	}
}
