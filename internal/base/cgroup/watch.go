package cgroup

import (
	"path"
	"path/filepath"

	"github.com/fsnotify/fsnotify"

	"temper.dev/temper/internal/base/host"
)

// Watcher tells when a cgroup that somebody waits for may have come or gone.
// It watches the directories above each, as far down as they exist: a handful of inotify
// watches, however large the tree. Nothing below a mapped cgroup matters, since tiers inherit.
type Watcher struct {
	root    host.Root
	always  []string
	notify  *fsnotify.Watcher
	changed chan struct{}
}

// NewWatcher starts to watch these directories of the node's file system, which exist, and no cgroup yet.
func NewWatcher(root host.Root, always ...string) (*Watcher, error) {
	notify, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	w := &Watcher{root: root, always: always, notify: notify, changed: make(chan struct{}, 1)}
	go w.pump()
	if _, err := w.Follow(nil); err != nil {
		notify.Close()
		return nil, err
	}
	return w, nil
}

// Changed receives after any change; changes that come together are told once.
func (w *Watcher) Changed() <-chan struct{} { return w.changed }

// Close ends the watch.
func (w *Watcher) Close() error { return w.notify.Close() }

// Follow watches for cgs and for no others, and tells whether that takes more than was watched before. Call it again
// after each change: a directory that came since can only be watched now. If there is more, what came in it before is not
// told: look at the tree once more, and nothing is missed.
func (w *Watcher) Follow(cgs []string) (more bool, err error) {
	want := map[string]bool{}
	for _, dir := range w.always {
		want[w.root.Path(dir)] = true
	}
	seen := map[string]bool{} // most have the same parent
	for _, cg := range cgs {
		parent := path.Dir(cg)
		if seen[parent] {
			continue
		}
		seen[parent] = true
		for _, above := range Ancestors(cg) {
			if dir := w.root.Cgroup(above); !want[dir] && host.Exists(dir) {
				want[dir] = true
			}
		}
	}
	for _, dir := range w.notify.WatchList() {
		if !want[filepath.Clean(dir)] {
			w.notify.Remove(dir) // fails only where the kernel has dropped the watch with its directory
		}
		delete(want, filepath.Clean(dir))
	}
	for dir := range want {
		if err := w.notify.Add(dir); err != nil && host.Exists(dir) {
			return true, err
		}
	}
	return len(want) > 0, nil
}

// pump folds many events into one. Errors (a queue overflow) count as a change: whoever
// listens looks at the whole tree anyway.
func (w *Watcher) pump() {
	for {
		select {
		case event, ok := <-w.notify.Events:
			if !ok {
				return
			}
			if !event.Has(fsnotify.Create | fsnotify.Remove | fsnotify.Rename) {
				continue // writes to control files
			}
		case _, ok := <-w.notify.Errors:
			if !ok {
				return
			}
		}
		select {
		case w.changed <- struct{}{}:
		default:
		}
	}
}
