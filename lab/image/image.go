// Package image makes what a guest boots with: Debian's userland and our own programs, packed as an initrd. Equal content
// gives equal bytes, since records are compared by the image's hash.
//
// It takes programs from this host, from packages and from 'make build', with the libraries that they need. Which of them a
// run needs is decided in package run.
package image

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"strings"

	"temper.dev/temper/lab/assets"
	"temper.dev/temper/lab/libraries"
	"temper.dev/temper/lab/plan"
	"temper.dev/temper/lab/userland"
)

// Image is the part of the initrd that is the same for every run of the same build: the
// distribution's userland and our programs. What a run adds follows it as a second archive.
//
// It is not compressed: the guest would spend seconds of its slow, counted instructions on it.
type Image struct {
	Hash string
	data []byte
}

// AddUsers adds root, and users without privileges, and groups of the same names. Services look up whom they run as. All but root
// are one, the service user.
func (a Archive) AddUsers(names []string) {
	passwd, group := []byte("root:x:0:0:root:/root:/bin/sh\n"), []byte("root:x:0:\n")
	for _, name := range append([]string{"service"}, names...) {
		passwd = fmt.Appendf(passwd, "%s:x:%d:%d::/tmp:/bin/sh\n", name, plan.ServiceUser, plan.ServiceUser)
		group = fmt.Appendf(group, "%s:x:%d:\n", name, plan.ServiceUser)
	}
	a.Data("etc/passwd", passwd)
	a.Data("etc/group", group)
}

// Guest is all that is in a guest but its kernel. What its arms attach is given beside, so that a stock guest, and a study of
// stock, stay the same while the scheduler is worked on. more takes the place of what is there: programs of a newer
// distribution bring a newer C library, which serves those of an older one, too.
func Guest(ctx context.Context, root string, built assets.Folder, attached map[string]string, more Archive) (Archive, error) {
	a := Archive{}
	for _, dir := range []string{"dev", "etc", "proc", "root", "run", "sys", "tmp", "var/log", "var/run"} {
		a.dir(dir)
	}
	a.AddUsers(nil)
	if err := a.addShell(ctx, root); err != nil {
		return nil, err
	}
	if err := a.addMemcached(root); err != nil {
		return nil, err
	}
	if err := a.addOurs(built); err != nil {
		return nil, err
	}
	for place, host := range attached {
		if _, there := a[place]; !there { // a library of the service
			a.Program(place, host)
		}
	}
	maps.Copy(a, more)
	return a, nil
}

// Pack packs a guest.
func (a Archive) Pack() (Image, error) {
	var out bytes.Buffer
	if err := a.write(&out); err != nil {
		return Image{}, err
	}
	sum := sha256.Sum256(out.Bytes())
	return Image{hex.EncodeToString(sum[:]), out.Bytes()}, nil
}

func (a Archive) addShell(ctx context.Context, root string) error {
	busybox := filepath.Join(root, userland.Busybox)
	names, err := applets(ctx, busybox)
	if err != nil {
		return err
	}
	for _, name := range names {
		a.link("bin/"+name, "busybox")
	}
	a.Program("bin/busybox", busybox)
	return nil
}

func (a Archive) addMemcached(root string) error {
	files, _, err := libraries.Closure(root, userland.Memcached)
	if err != nil {
		return err
	}
	for guest, host := range files {
		a.Program(guest, host)
		if filepath.Base(guest) == libraries.Loader {
			a.link("lib64/"+libraries.Loader, "/"+guest)
		}
	}
	return nil
}

func (a Archive) addOurs(built assets.Folder) error {
	ours := map[string]string{"init": assets.GuestInit}
	for _, p := range assets.GuestPrograms {
		ours["bin/"+p] = "build/guest/" + p
	}
	for name, asset := range ours {
		host, err := built.File(asset)
		if err != nil {
			return err
		}
		a.Program(name, host)
	}
	return nil
}

// applets lists the commands that busybox plays. It is static, so it runs on the host too.
func applets(ctx context.Context, busybox string) ([]string, error) {
	out, err := exec.CommandContext(ctx, busybox, "--list").Output()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s --list", busybox), err)
	}
	return strings.Fields(string(out)), nil
}

// Initrd is the image with what a run adds. The kernel takes archives one after the other, each
// at a multiple of four bytes.
func (i Image) Initrd(overlay Archive) ([]byte, error) {
	out := bytes.NewBuffer(bytes.Clone(i.data))
	for out.Len()%4 != 0 {
		out.WriteByte(0)
	}
	err := overlay.write(out)
	return out.Bytes(), err
}
