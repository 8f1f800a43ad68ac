package lab

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"temper.dev/temper/internal/evidence/bench"
	"temper.dev/temper/lab/plan"
)

// Options say which machine to start. The zero value is the default machine of this checkout.
type Options struct {
	Kernel string // series, version or release; "" is DefaultSeries
	Assets Assets // "" is DefaultAssets
	Cache  Cache  // "" is DefaultCache

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
	Kernel Kernel
	Hashes bench.Hashes

	cache    Cache
	assets   Assets
	emulator emulator
	image    image
}

// Open gets everything ready, and fetches what is not cached. The guest has what these arms attach.
func Open(ctx context.Context, o Options, arms []string) (*Lab, error) {
	return open(ctx, o, arms, nil)
}

// open also puts more into the guest, if more is not nil.
func open(ctx context.Context, o Options, arms []string, more func(context.Context, *Lab, func(string)) (archive, error)) (*Lab, error) {
	l := &Lab{cache: o.Cache, assets: o.Assets}
	var err error
	if l.cache == "" {
		if l.cache, err = DefaultCache(); err != nil {
			return nil, err
		}
	}
	if l.assets == "" {
		if l.assets, err = DefaultAssets(); err != nil {
			return nil, err
		}
	}
	// In the order of what a newcomer is most likely to lack; the network comes last.
	if l.emulator, err = findEmulator(ctx); err != nil {
		return nil, err
	}
	l.Hashes.Emulator = l.emulator.hash
	if usesTemper(arms) {
		if err := l.hashBPF(); err != nil {
			return nil, err
		}
	}
	if _, err := l.assets.file(guestInit); err != nil {
		return nil, err
	}
	if l.Kernel, err = l.cache.findKernel(ctx, cmp.Or(o.Kernel, DefaultSeries), o.notify); err != nil {
		return nil, err
	}
	if l.Hashes.Kernel, err = hashFile(l.cache.Vmlinuz(l.Kernel)); err != nil {
		return nil, err
	}
	files, err := l.attachedBy(ctx, arms)
	if err != nil {
		return nil, err
	}
	var added archive
	if more != nil {
		if added, err = more(ctx, l, o.notify); err != nil {
			return nil, err
		}
	}
	if l.image, err = l.packGuest(ctx, files, added, o.notify); err != nil {
		return nil, err
	}
	l.Hashes.Guest = l.image.hash
	return l, nil
}

// bootSteady boots the deterministic machine, with a file that tells its first process what to do, and hands its events on.
func (l *Lab) bootSteady(ctx context.Context, machine speed, file string, what any, deadline time.Duration, handle func(plan.Event) error) error {
	kernel, err := l.cache.steadyKernel(l.Kernel)
	if err != nil {
		return err
	}
	text, err := json.Marshal(what)
	if err != nil {
		return err
	}
	overlay := archive{}
	overlay.data(file, text)
	initrd, err := l.image.initrd(overlay)
	if err != nil {
		return err
	}
	return l.cache.boot(ctx, guest{emulator: l.emulator.path, args: deterministicArgs(machine, kernel), initrd: initrd, deadline: deadline, renewed: true}, handle)
}

func (l *Lab) hashBPF() error {
	object, err := l.assets.file(bpfObject)
	if err != nil {
		return err
	}
	l.Hashes.BPF, err = hashFile(object)
	return err
}

func (l *Lab) packGuest(ctx context.Context, attached map[string]string, more archive, notify func(string)) (image, error) {
	unlock, err := l.cache.lock()
	if err != nil {
		return image{}, err
	}
	defer unlock()
	userland, err := l.cache.userland(ctx, notify)
	if err != nil {
		return image{}, err
	}
	return packImage(ctx, userland, l.assets, attached, more)
}
