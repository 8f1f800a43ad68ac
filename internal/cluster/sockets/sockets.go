// Package sockets asks the kernel whose sockets listen.
package sockets

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// Of linux/sock_diag.h, inet_diag.h and tcp_states.h.
const (
	sockDiagByFamily = 20
	listening        = 1 << 10 // TCP_LISTEN
	cgroupID         = 21      // INET_DIAG_CGROUP_ID, since 5.8

	requestSize  = 56 // struct inet_diag_req_v2
	responseSize = 72 // struct inet_diag_msg
	portAt       = 4
	uidAt        = 64
)

// Listeners are the cgroups, by id, that made root's sockets which listen at a TCP port in this network namespace. Anybody may
// ask. A cgroup that is gone may be among them.
func Listeners(port uint16) ([]uint64, error) {
	conn, err := netlink.Dial(unix.NETLINK_SOCK_DIAG, nil)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	var cgroups []uint64
	for _, family := range []byte{unix.AF_INET, unix.AF_INET6} {
		request := make([]byte, requestSize)
		request[0], request[1] = family, unix.IPPROTO_TCP
		binary.NativeEndian.PutUint32(request[4:], listening)
		messages, err := conn.Execute(netlink.Message{Header: netlink.Header{Type: sockDiagByFamily, Flags: netlink.Request | netlink.Dump}, Data: request})
		if err != nil {
			return nil, err
		}
		for _, m := range messages {
			id, err := madeBy(m.Data, port)
			if err != nil {
				return nil, err
			}
			if id != 0 && !slices.Contains(cgroups, id) {
				cgroups = append(cgroups, id)
			}
		}
	}
	return cgroups, nil
}

// madeBy is the cgroup of one answer; 0 where it is about another port or user, or the kernel does not say.
func madeBy(answer []byte, port uint16) (id uint64, err error) {
	if len(answer) < responseSize {
		return 0, fmt.Errorf("the kernel's answer about a socket has %d bytes, not %d", len(answer), responseSize)
	}
	if binary.BigEndian.Uint16(answer[portAt:]) != port || binary.NativeEndian.Uint32(answer[uidAt:]) != 0 {
		return 0, nil
	}
	attributes, err := netlink.NewAttributeDecoder(answer[responseSize:])
	if err != nil {
		return 0, err
	}
	for attributes.Next() {
		if attributes.Type() == cgroupID {
			id = attributes.Uint64()
		}
	}
	return id, attributes.Err()
}
