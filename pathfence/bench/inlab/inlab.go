// Package inlab does the benchmark's runs in guests of 'temper-lab exec', whose time is executed instructions: what the
// host does meanwhile changes nothing.
//
// files.go: what a guest needs. guest.go: one guest, and what it says. study.go: a guest for each repetition, and what is
// done already.
package inlab

// The machine: the lab's smallest. Its last CPU is the clients', as if they were on another machine; services and
// downstreams have the others.
const (
	CPUs       = 3
	serverCPUs = "0-1"
	clientCPU  = "2"
)

// hostFactor is about how many seconds a second of the guest takes on a host that does nothing else.
const hostFactor = 3
