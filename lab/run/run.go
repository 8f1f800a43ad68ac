// Package run does with the machine what 'temper-lab' is asked for: a command, a ladder, many ladders that go on where they
// were interrupted, costs, limits, an attack, a survey. Each checks what it is asked for before a minute is spent, gets kernel
// and image ready, boots, and turns the guest's events into a record.
//
// What the guest does is in packages guest, ladder and chaos; what records say, in packages named like them.
package run

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"temper.dev/temper/internal/evidence/bench"
	"temper.dev/temper/lab/assets"
	"temper.dev/temper/lab/cache"
	"temper.dev/temper/lab/image"
	"temper.dev/temper/lab/kernels"
	"temper.dev/temper/lab/machine"
	"temper.dev/temper/lab/plan"
	"temper.dev/temper/lab/userland"
)

// Options say which machine to start. The zero value is the default machine of this checkout.
type Options struct {
	Kernel string        // series, version or release; "" is kernels.DefaultSeries
	Assets assets.Folder // "" is assets.Default
	Cache  cache.Folder  // "" is cache.Default

	Notify func(what string) // told of each step that may take long; may be nil
}

func (o Options) notify(what string) {
	if o.Notify != nil {
		o.Notify(what)
	}
}

// Lab is a machine that is ready to start, any number of times: kernel, guest and emulator are at
// hand, and stay the same however the checkout changes meanwhile.
type Lab struct {
	Kernel kernels.Kernel
	Hashes bench.Hashes

	cache    cache.Folder
	assets   assets.Folder
	emulator machine.Emulator
	image    image.Image
}

// Open gets everything ready, and fetches what is not cached. The guest has what these arms attach.
func Open(ctx context.Context, o Options, arms []string) (*Lab, error) {
	return open(ctx, o, arms, nil)
}

// open also puts more into the guest, if more is not nil.
func open(ctx context.Context, o Options, arms []string, more func(context.Context, *Lab, func(string)) (image.Archive, error)) (*Lab, error) {
	l := &Lab{cache: o.Cache, assets: o.Assets}
	var err error
	if l.cache == "" {
		if l.cache, err = cache.Default(); err != nil {
			return nil, err
		}
	}
	if l.assets == "" {
		if l.assets, err = assets.Default(); err != nil {
			return nil, err
		}
	}
	// In the order of what a newcomer is most likely to lack; the network comes last.
	if l.emulator, err = machine.FindEmulator(ctx); err != nil {
		return nil, err
	}
	if l.Hashes.Emulator, err = hashFile(l.emulator.Path); err != nil {
		return nil, err
	}
	if usesTemper(arms) {
		if err := l.hashBPF(); err != nil {
			return nil, err
		}
	}
	if _, err := l.assets.File(assets.GuestInit); err != nil {
		return nil, err
	}
	if l.Kernel, err = kernels.Find(ctx, l.cache, cmp.Or(o.Kernel, kernels.DefaultSeries), o.notify); err != nil {
		return nil, err
	}
	if l.Hashes.Kernel, err = hashFile(kernels.Vmlinuz(l.cache, l.Kernel)); err != nil {
		return nil, err
	}
	files, err := l.attachedBy(ctx, arms)
	if err != nil {
		return nil, err
	}
	var added image.Archive
	if more != nil {
		if added, err = more(ctx, l, o.notify); err != nil {
			return nil, err
		}
	}
	guest, err := guestFiles(ctx, l.cache, l.assets, files, added, o.notify)
	if err != nil {
		return nil, err
	}
	if l.image, err = guest.Pack(); err != nil {
		return nil, err
	}
	l.Hashes.Guest = l.image.Hash
	return l, nil
}

// bootSteady boots the deterministic machine, with a file that tells its first process what to do, and hands its events on.
func (l *Lab) bootSteady(ctx context.Context, s machine.Speed, file string, what any, deadline time.Duration, handle func(plan.Event) error) error {
	kernel, err := kernels.Steady(l.cache, l.Kernel)
	if err != nil {
		return err
	}
	text, err := json.Marshal(what)
	if err != nil {
		return err
	}
	overlay := image.Archive{}
	overlay.Data(file, text)
	initrd, err := l.image.Initrd(overlay)
	if err != nil {
		return err
	}
	return machine.Boot(ctx, l.cache, machine.Guest{
		Emulator: l.emulator.Path, Args: machine.DeterministicArgs(s, kernel), Initrd: initrd, Deadline: deadline, Renewed: true,
	}, handle)
}

func (l *Lab) hashBPF() error {
	object, err := l.assets.File(assets.BPFObject)
	if err != nil {
		return err
	}
	l.Hashes.BPF, err = hashFile(object)
	return err
}

// guestFiles are all that a guest has, but for its kernel.
func guestFiles(ctx context.Context, c cache.Folder, built assets.Folder, attached map[string]string, more image.Archive, notify func(string)) (image.Archive, error) {
	unlock, err := c.Lock()
	if err != nil {
		return nil, err
	}
	defer unlock()
	root, err := userland.Base(ctx, c, notify)
	if err != nil {
		return nil, err
	}
	return image.Guest(ctx, root, built, attached, more)
}
