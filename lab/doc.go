// Package lab boots Debian's Linux kernels under QEMU's instruction counting, where time advances
// with executed instructions, and measures schedulers in them: the same figures to the last digit on
// any host. One instruction of the kernel is changed, in its idle loop; steady.go says which and why.
//
// The way through the package, in order: a mirror of Debian is found (mirror.go), a private apt
// state reads it (apt.go), a kernel (kernel.go, steady.go) and the guest's userland (userland.go)
// are fetched and cached (cache.go), the initrd is packed (image.go, cpio.go), the machine is
// started (machine.go, boot.go), and its events (follow.go) become a record (ladder.go), an exit
// status (exec.go), or a folder of records (study.go).
package lab
