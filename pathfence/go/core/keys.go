package core

import (
	"fmt"
	"slices"
	"strings"
)

const (
	defaultWeight = 100
	MaxName       = 64  // bytes
	maxEdges      = 8   // of one key; more are ignored
	maxKeys       = 256 // that are learned, and as many that are being learned
	learnAfter    = 8   // completions without a new edge until a key's class is known
	candidateLife = 1000 * ms
)

// ValidName says whether a key, an edge or a class may have this name: 1 to 64 bytes of a-z A-Z 0-9 . _ / : + - ~
func ValidName(s string) bool {
	if len(s) == 0 || len(s) > MaxName {
		return false
	}
	for i := 0; i < len(s); i++ {
		if !inNames[s[i]] {
			return false
		}
	}
	return true
}

// inNames has the bytes that names are made of: a table, since each request's key is looked at.
var inNames = func() (in [256]bool) {
	for _, b := range []byte("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/:+-~") {
		in[b] = true
	}
	return in
}()

// fnv1a is the 64-bit FNV-1a hash.
func fnv1a(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := 0; i < len(s); i++ {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h
}

// candidate is a key whose edges are being learned.
type candidate struct {
	key     string
	edges   []string // sorted
	quiet   int64    // completions since the last new edge
	class   int      // once it is learned
	touched Time
}

// keyTable finds the class of a key: configured, learned by its edges, or by hash.
type keyTable struct {
	configured map[string]int
	learned    map[string]*candidate // with a class, by footprint
	candidates [maxKeys]*candidate   // direct-mapped by hash, so that forged keys cost no memory
	footprints map[string]int        // class by edges
}

// footprint is what keys of one class have in common: their edges. A key without edges has nothing in common with any
// other, so it has a class of its own; but the last one that may be learned is for all such that come later.
func (f *Fence) footprint(k *candidate) string {
	if len(k.edges) > 0 {
		return strings.Join(k.edges, ",")
	}
	own := "=" + k.key
	if _, known := f.keys.footprints[own]; known || f.learnedClasses() < maxLearned-1 {
		return own
	}
	return ""
}

// learnedClasses is how many there are.
func (f *Fence) learnedClasses() (count int) {
	for _, c := range f.classes {
		if c.learned {
			count++
		}
	}
	return count
}

// classOf gives the class of a request with this key.
func (f *Fence) classOf(key string) *class {
	if i, ok := f.keys.configured[key]; ok { // what is configured or learned is valid
		return f.classes[i]
	}
	if k := f.keys.learned[key]; k != nil {
		return f.classes[k.class]
	}
	if !ValidName(key) {
		return f.classes[0]
	}
	return f.classes[fnv1a(key)%uint64(f.buckets)]
}

// candidateFor is the entry in which the edges of a key are collected, or nil where the key has none.
func (f *Fence) candidateFor(key string) *candidate {
	if _, ok := f.keys.configured[key]; ok || !ValidName(key) {
		return nil
	}
	if k := f.keys.learned[key]; k != nil {
		return k
	}
	slot := &f.keys.candidates[fnv1a(key)>>8%maxKeys]
	if *slot == nil || (*slot).key != key && f.now-(*slot).touched >= candidateLife {
		*slot = &candidate{key: key, touched: f.now}
	}
	if (*slot).key != key {
		return nil
	}
	return *slot
}

// Edge says that the request uses a downstream edge.
func (f *Fence) Edge(now Time, id int64, edge string) []Event {
	f.advance(now)
	r := f.requests[id]
	if r != nil && r.parent != nil {
		r = r.parent
	}
	if r == nil || r.waits || !ValidName(edge) {
		return f.take()
	}
	if i, ok := f.keys.configured[r.key]; ok {
		f.uses(f.classes[i], edge)
		return f.take()
	}
	k := f.candidateFor(r.key)
	if k == nil {
		return f.take()
	}
	i, known := slices.BinarySearch(k.edges, edge)
	if known || len(k.edges) == maxEdges {
		return f.take()
	}
	before := slices.Clone(k.edges)
	k.edges = slices.Insert(k.edges, i, edge)
	k.quiet = 0
	if f.keys.learned[r.key] != nil && !f.adopt(k) {
		// No class is left for the larger set: the key stays where it is.
		k.edges = before
	}
	return f.take()
}

// learnKey counts a completion of a key that has no class yet.
func (f *Fence) learnKey(key string) {
	if f.keys.learned[key] != nil {
		return
	}
	k := f.candidateFor(key)
	if k == nil {
		return
	}
	k.touched = f.now
	k.quiet++
	if k.quiet >= learnAfter && len(f.keys.learned) < maxKeys && f.adopt(k) {
		f.keys.learned[key] = k
		f.keys.candidates[fnv1a(key)>>8%maxKeys] = nil
	}
}

// adopt makes sure that there is a class for the candidate's edges.
func (f *Fence) adopt(k *candidate) bool {
	fp := f.footprint(k)
	if known, ok := f.keys.footprints[fp]; ok {
		k.class = known
		return true
	}
	if own, ok := f.keys.footprints["="+k.key]; ok { // what was its own goes with it
		delete(f.keys.footprints, "="+k.key)
		f.keys.footprints[fp], k.class = own, own
		for _, edge := range k.edges {
			f.uses(f.classes[own], edge)
		}
		return true
	}
	name := learnedName(fp)
	if f.learnedClasses() == maxLearned || f.named(name) != nil {
		return false
	}
	c := f.addClass(ClassConfig{Name: name, Weight: defaultWeight, Target: f.cfg.Target})
	c.seen, c.learned = f.now, true
	for _, edge := range k.edges {
		c.edges.add(edge)
	}
	f.keys.footprints[fp], k.class = c.index, c.index
	f.shareOut()
	return true
}

// learnedName is what the class of a footprint is called: by that, so that it has the same name in each process of a service,
// and after each start. Where that is too long, or an edge has a + itself, a hash tells it apart.
func learnedName(footprint string) string {
	name := "~rest"
	if key, own := strings.CutPrefix(footprint, "="); own {
		name = "~key:" + key
	} else if footprint != "" {
		name = "~calls:" + strings.ReplaceAll(footprint, ",", "+")
	}
	if len(name) <= MaxName && (!strings.HasPrefix(name, "~calls:") || !strings.Contains(footprint, "+")) {
		return name
	}
	hash := fmt.Sprintf("~%08x", uint32(fnv1a(footprint)))
	return name[:min(len(name), MaxName-len(hash))] + hash
}
