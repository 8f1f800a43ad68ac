package lab

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

	"temper.dev/temper/lab/plan"
)

// image is the part of the initrd that is the same for every run of the same build: the
// distribution's userland and our programs. What a run adds follows it as a second archive.
//
// It is not compressed: the guest would spend seconds of its slow, counted instructions on it.
type image struct {
	data []byte
	hash string
}

// packImage packs the guest. What its arms attach is given beside, so that a stock guest, and a study of stock, stay the
// same while the scheduler is worked on. more takes the place of what is there: programs of a newer distribution bring a
// newer C library, which serves those of an older one, too.
func packImage(ctx context.Context, userland string, assets Assets, attached map[string]string, more archive) (image, error) {
	a := archive{}
	for _, dir := range []string{"dev", "etc", "proc", "root", "run", "sys", "tmp", "var/log", "var/run"} {
		a.dir(dir)
	}
	// Services look up whom they run as.
	a.data("etc/passwd", fmt.Appendf(nil, "root:x:0:0:root:/root:/bin/sh\nservice:x:%d:%d::/tmp:/bin/sh\n", plan.ServiceUser, plan.ServiceUser))
	a.data("etc/group", fmt.Appendf(nil, "root:x:0:\nservice:x:%d:\n", plan.ServiceUser))
	if err := a.addShell(ctx, userland); err != nil {
		return image{}, err
	}
	if err := a.addService(userland); err != nil {
		return image{}, err
	}
	if err := a.addOurs(assets); err != nil {
		return image{}, err
	}
	for place, host := range attached {
		if _, there := a[place]; !there { // a library of the service
			a.program(place, host)
		}
	}
	maps.Copy(a, more)
	var out bytes.Buffer
	if err := a.write(&out); err != nil {
		return image{}, err
	}
	sum := sha256.Sum256(out.Bytes())
	return image{out.Bytes(), hex.EncodeToString(sum[:])}, nil
}

func (a archive) addShell(ctx context.Context, userland string) error {
	busybox := filepath.Join(userland, shellBinary)
	names, err := applets(ctx, busybox)
	if err != nil {
		return err
	}
	for _, name := range names {
		a.link("bin/"+name, "busybox")
	}
	a.program("bin/busybox", busybox)
	return nil
}

func (a archive) addService(userland string) error {
	files, _, err := libraryClosure(userland, serviceBinary)
	if err != nil {
		return err
	}
	for guest, host := range files {
		a.program(guest, host)
		if filepath.Base(guest) == loaderName {
			a.link("lib64/"+loaderName, "/"+guest)
		}
	}
	return nil
}

func (a archive) addOurs(assets Assets) error {
	ours := map[string]string{"init": guestInit}
	for _, p := range GuestPrograms {
		ours["bin/"+p] = "build/guest/" + p
	}
	for name, asset := range ours {
		host, err := assets.file(asset)
		if err != nil {
			return err
		}
		a.program(name, host)
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

// initrd is the image with what a run adds. The kernel takes archives one after the other, each
// at a multiple of four bytes.
func (i image) initrd(overlay archive) ([]byte, error) {
	out := bytes.NewBuffer(bytes.Clone(i.data))
	for out.Len()%4 != 0 {
		out.WriteByte(0)
	}
	err := overlay.write(out)
	return out.Bytes(), err
}
