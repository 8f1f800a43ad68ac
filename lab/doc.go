// Package lab is the deterministic machine. It boots Debian's Linux kernels under QEMU's instruction counting, where time
// advances with executed instructions, and measures schedulers in them: the same figures to the last digit on any host. One
// instruction of the kernel is changed, in its idle loop; kernels/steady.go says which and why.
//
// This package is empty. The way through those below, of which each knows those before it only:
//
//   - cache is the folder that keeps what was fetched, and assets what 'make build' leaves.
//   - libraries finds what a program needs to start. apt finds a mirror of Debian, and reads its archive.
//   - kernels and userland fetch a kernel and the guest's programs. image packs the initrd.
//   - machine starts the emulator, and hands on the guest's events. native has a ladder run on this host instead.
//   - run does what 'temper-lab' is asked for. It makes of events a record, an exit status, or a folder of records.
//
// The guest's side is in guest, ladder and chaos. plan has what both sides say to each other. limits, cost, observed and
// survey have what records of these runs say, and workload what users write. nodeparts is for tests of a whole node.
package lab
