// Package listening finds the programs of this host that listen on TCP ports, and what is known of each from outside: enough to
// describe it as a workload. It asks /proc and Debian's package database, and changes nothing.
package listening

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/procfs"
)

// Program is one that listens.
type Program struct {
	Port    int      `json:"port"`
	PID     int      `json:"pid"`
	Path    string   `json:"path"`              // of its executable file
	Package string   `json:"package,omitempty"` // of Debian that has it; "": none
	Command []string `json:"command"`           // as the process shows it, which it may have rewritten
	Folder  string   `json:"folder"`            // where it works
	// Users are the names of those as whom it and what shares its socket run, but for root.
	Users []string `json:"users"`
	Root  bool     `json:"root"` // it is root's, whatever it has become for what it starts
	// Variables are the names of its environment. Their values may be secrets.
	Variables []string `json:"variables"`
	// Calls are the addresses that it, and what shares its socket, have connected to.
	Calls []string `json:"calls"`
	// Contained is a process with files of its own: what Path names is not this host's.
	Contained bool `json:"contained"`
}

// Found is what listens on this host, by port; of several processes that share a socket, the one that started the others.
type Found struct {
	Programs []Program `json:"programs"`
	// Hidden are ports on which processes listen that only root may look at.
	Hidden []int `json:"hidden"`
}

// socket is what the kernel says of one.
type socket struct {
	local, remote netip.AddrPort
	listens       bool
}

// Find looks at all processes.
func Find() (Found, error) {
	proc, err := procfs.NewDefaultFS()
	if err != nil {
		return Found{}, err
	}
	sockets, err := socketsOf(proc)
	if err != nil {
		return Found{}, err
	}
	owners, err := ownersOf(proc, sockets)
	if err != nil {
		return Found{}, err
	}
	found := Found{Programs: []Program{}, Hidden: []int{}}
	taken := map[int]bool{}
	for inode, s := range sockets {
		port := int(s.local.Port())
		if !s.listens || taken[port] {
			continue
		}
		taken[port] = true
		first, ok := oldest(owners[inode])
		if !ok {
			found.Hidden = append(found.Hidden, port)
			continue
		}
		p, err := describe(first, port)
		if err == nil {
			p.Users, err = usersOf(owners[inode])
		}
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			found.Hidden = append(found.Hidden, port) // it has ended, or is not ours to look at
			continue
		}
		if err != nil {
			return Found{}, err
		}
		p.Calls = calls(owners[inode], owners, sockets)
		found.Programs = append(found.Programs, p)
	}
	slices.SortFunc(found.Programs, func(a, b Program) int { return cmp.Compare(a.Port, b.Port) })
	slices.Sort(found.Hidden)
	return found, nil
}

// socketsOf are the TCP sockets of this network namespace, by inode.
func socketsOf(proc procfs.FS) (map[uint64]socket, error) {
	const listen = 0x0a // include/net/tcp_states.h
	sockets := map[uint64]socket{}
	for _, table := range []func() (procfs.NetTCP, error){proc.NetTCP, proc.NetTCP6} {
		lines, err := table()
		if errors.Is(err, fs.ErrNotExist) { // no IPv6
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, l := range lines {
			local, _ := netip.AddrFromSlice(l.LocalAddr)
			remote, _ := netip.AddrFromSlice(l.RemAddr)
			sockets[l.Inode] = socket{
				netip.AddrPortFrom(local.Unmap(), uint16(l.LocalPort)), netip.AddrPortFrom(remote.Unmap(), uint16(l.RemPort)), l.St == listen,
			}
		}
	}
	return sockets, nil
}

// ownersOf are the processes that have each of the sockets open. Those of others are left out where we are not root.
func ownersOf(proc procfs.FS, sockets map[uint64]socket) (map[uint64][]procfs.Proc, error) {
	processes, err := proc.AllProcs()
	if err != nil {
		return nil, err
	}
	owners := map[uint64][]procfs.Proc{}
	for _, p := range processes {
		targets, err := p.FileDescriptorTargets()
		if err != nil { // it has ended, or is not ours to look at
			continue
		}
		for _, target := range targets {
			number, ok := strings.CutPrefix(target, "socket:[")
			inode, err := strconv.ParseUint(strings.TrimSuffix(number, "]"), 10, 64)
			if _, tcp := sockets[inode]; ok && err == nil && tcp {
				owners[inode] = append(owners[inode], p)
			}
		}
	}
	return owners, nil
}

// oldest is the process of these that started first, which has started the others or been told to listen before them.
func oldest(of []procfs.Proc) (first procfs.Proc, ok bool) {
	since := uint64(0)
	for _, p := range of {
		stat, err := p.Stat()
		if err == nil && (!ok || stat.Starttime < since) {
			first, since, ok = p, stat.Starttime, true
		}
	}
	return first, ok
}

func describe(of procfs.Proc, port int) (Program, error) {
	p := Program{Port: port, PID: of.PID, Variables: []string{}}
	var err error
	if p.Path, err = of.Executable(); err != nil {
		return p, err
	}
	p.Path = strings.TrimSuffix(p.Path, " (deleted)") // a newer one may be there by now
	if p.Command, err = of.CmdLine(); err != nil {
		return p, err
	}
	if p.Folder, err = of.Cwd(); err != nil {
		return p, err
	}
	status, err := of.NewStatus()
	if err != nil {
		return p, err
	}
	p.Root = status.UIDs[1] == 0
	variables, err := of.Environ()
	if err != nil {
		return p, err
	}
	for _, v := range variables {
		if name, _, ok := strings.Cut(v, "="); ok && name != "" {
			p.Variables = append(p.Variables, name)
		}
	}
	slices.Sort(p.Variables)
	if p.Contained, err = contained(of.PID); err != nil || p.Contained {
		return p, err
	}
	p.Package, err = PackageOf(p.Path)
	return p, err
}

// usersOf are the names of as whom processes run, but for root.
func usersOf(processes []procfs.Proc) ([]string, error) {
	names := []string{}
	for _, p := range processes {
		status, err := p.NewStatus()
		if err != nil {
			return nil, err
		}
		id := status.UIDs[1]
		known, err := user.LookupId(strconv.FormatUint(id, 10))
		if err != nil || id == 0 || slices.Contains(names, known.Username) { // a user of no name is nobody whom a configuration names
			continue
		}
		names = append(names, known.Username)
	}
	slices.Sort(names)
	return names, nil
}

// contained says whether a process has another root than this one. One with mounts of its own over the same root, as units of
// systemd have, has not.
func contained(pid int) (bool, error) {
	ours, err := os.Stat("/")
	if err != nil {
		return false, err
	}
	its, err := os.Stat(fmt.Sprintf("/proc/%d/root/", pid))
	return err == nil && !os.SameFile(ours, its), err
}

// calls are the addresses that processes have connected to: their connections that do not end at a port on which they listen.
func calls(of []procfs.Proc, owners map[uint64][]procfs.Proc, sockets map[uint64]socket) []string {
	listens := map[uint16]bool{}
	var others []netip.AddrPort
	for inode, s := range sockets {
		if s.listens && share(of, owners[inode]) {
			listens[s.local.Port()] = true
		}
	}
	for inode, s := range sockets {
		if !s.listens && !listens[s.local.Port()] && s.remote.Port() != 0 && share(of, owners[inode]) {
			others = append(others, s.remote)
		}
	}
	slices.SortFunc(others, netip.AddrPort.Compare)
	called := []string{}
	for _, to := range slices.Compact(others) {
		called = append(called, to.String())
	}
	return called
}

// share says whether a process is among both.
func share(a, b []procfs.Proc) bool {
	return slices.ContainsFunc(a, func(p procfs.Proc) bool {
		return slices.ContainsFunc(b, func(o procfs.Proc) bool { return o.PID == p.PID })
	})
}
