package sockets

import (
	"net"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// The kernel that this runs on may have no cgroup v2, and then all sockets are of one cgroup: the guest tests tell them apart.
func TestListeners(t *testing.T) {
	root := os.Geteuid() == 0 // others' do not count
	for _, c := range []struct {
		name, network, address string
		listens, want          bool
	}{
		{"all addresses", "tcp", ":0", true, true},
		{"IPv4", "tcp4", "127.0.0.1:0", true, true},
		{"IPv6", "tcp6", "[::1]:0", true, true},
		{"closed", "tcp", ":0", false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			listener, err := net.Listen(c.network, c.address)
			if err != nil {
				t.Fatal(err)
			}
			defer listener.Close()
			port := uint16(listener.Addr().(*net.TCPAddr).Port)
			if !c.listens {
				listener.Close()
			}
			ids, err := Listeners(port)
			if err != nil || (len(ids) == 1) != (c.want && root) {
				t.Errorf("cgroups %v, %v; want one: %t", ids, err, c.want && root)
			}
		})
	}
}

func TestListenersOfOthersDoNotCount(t *testing.T) {
	answer := make([]byte, responseSize, responseSize+12)
	answer[portAt], answer[portAt+1] = 0x28, 0x0a
	answer = append(answer, 12, 0, cgroupID, 0, 7, 0, 0, 0, 0, 0, 0, 0)
	for _, c := range []struct {
		name string
		port uint16
		uid  byte
		want uint64
	}{
		{"root's", 10250, 0, 7},
		{"another port", 10251, 0, 0},
		{"another user's", 10250, 1, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			answer[uidAt] = c.uid
			if id, err := madeBy(answer, c.port); id != c.want || err != nil {
				t.Errorf("cgroup %d, %v; want %d", id, err, c.want)
			}
		})
	}
	if _, err := madeBy(answer[:unix.SizeofNlAttr], 10250); err == nil {
		t.Error("a short answer is taken")
	}
}
