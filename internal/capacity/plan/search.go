package plan

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"

	"temper.dev/temper/internal/capacity/snapshot"
)

// workers is how many replays run at a time. It is the same on every machine, since those beside one that fails are had, too,
// and decide how the search goes on: so the same plan comes out everywhere.
const workers = 2

const (
	// largeCluster is the number of pods from which on the search is sparing with replays.
	largeCluster = 5000
	// fewMoves are what the first plan of a large cluster moves, so that there is one soon.
	fewMoves = 200
)

// search looks for the set of nodes whose capacity is largest, of those that replays confirm. It goes from a small set that is
// had soon to as many nodes as the bound leaves hope for, gives up those that replays give up, and then adds others, many or
// one at a time.
type search struct {
	*problem
	worlds     []*world
	seeds      []uint64
	options    Options
	best       *found
	candidates []string // the ones that are easiest to empty first
	reasons    map[string]string
	bound      int // atLeast
}

// found is a set that was confirmed, with what the first seed made of it.
type found struct {
	set  map[string]bool
	done []landing
	cpu  int64 // capacity of the nodes, in thousandths of CPUs
}

func newSearch(ctx context.Context, p *problem, o Options) (*search, error) {
	s := &search{problem: p, options: o, reasons: map[string]string{}, bound: p.atLeast()}
	for i := range o.Replays {
		s.seeds = append(s.seeds, o.Seed+uint64(i))
	}
	for range min(workers, o.Replays) {
		w, err := newWorld(ctx, p)
		if err != nil {
			return nil, err
		}
		s.worlds = append(s.worlds, w)
	}
	for _, name := range p.names {
		if len(p.nodes[name].blocks) == 0 {
			s.candidates = append(s.candidates, name)
		}
	}
	slices.SortStableFunc(s.candidates, func(a, b string) int { return cmp.Compare(p.nodes[a].load(), p.nodes[b].load()) })
	return s, nil
}

// load is the largest share of the node's room that has to be moved.
func (m *machine) load() float64 {
	return m.moved.share(m.room)
}

func (s *search) run(ctx context.Context) error {
	if err := s.widen(ctx); err != nil {
		return err
	}
	return s.explain(ctx)
}

// widen goes from a plan soon to the best one.
func (s *search) widen(ctx context.Context) error {
	if err := s.shrink(ctx, map[string]bool{}, byNode); err != nil {
		return err
	}
	for _, set := range s.hopes() {
		for _, order := range s.orders() {
			if s.spent() || len(set) <= len(s.best.set) {
				break
			}
			if err := s.shrink(ctx, set, order); err != nil {
				return err
			}
		}
	}
	return s.grow(ctx)
}

// hopes are sets to be tried, each a part of the next: the nodes that are empty, in a large cluster those that few moves
// empty, so many that 2 per cent more than the bound are left, and as many as the bound leaves hope for. The last one rarely
// holds as a whole, and a try of a large set takes long: hence the one before.
func (s *search) hopes() (sets []map[string]bool) {
	atMost := len(s.names) - s.bound
	sizes := []int{s.within(0), atMost - s.bound/50, atMost}
	if s.large() {
		sizes = slices.Insert(sizes, 1, s.within(fewMoves), s.within(5*fewMoves))
	}
	for _, size := range sizes {
		set := map[string]bool{}
		for _, name := range s.candidates[:max(0, min(size, atMost, len(s.candidates)))] {
			set[name] = true
		}
		sets = append(sets, set)
	}
	return sets
}

// within is how many of the easiest candidates so many moves empty.
func (s *search) within(moves int) int {
	for n, name := range s.candidates {
		if moves -= len(s.nodes[name].movers); moves < 0 {
			return n
		}
	}
	return len(s.candidates)
}

// large is whether one replay takes so long that only few can be had.
func (s *search) large() bool { return len(s.snapshot.Pods) > largeCluster }

// orders are those in which a set is tried. Node by node is what an execution wants; by size is where more fits.
func (s *search) orders() []order {
	if s.large() {
		return []order{bySize}
	}
	return []order{byNode, bySize}
}

// order is one in which the pods of a set of nodes are moved.
type order func(*search, map[string]bool) []*mover

// byNode empties one node after another, so that what is left when an execution is given up are whole nodes. Those with the
// largest pods come first, as long as there is room for them.
func byNode(s *search, set map[string]bool) (order []*mover) {
	nodes := slices.SortedFunc(maps.Keys(set), func(a, b string) int {
		return cmp.Or(cmp.Compare(s.nodes[b].largest(), s.nodes[a].largest()), cmp.Compare(a, b))
	})
	for _, name := range nodes {
		order = append(order, s.nodes[name].movers...)
	}
	return order
}

func (m *machine) largest() float64 {
	if len(m.movers) == 0 {
		return 0
	}
	return m.movers[0].size
}

// bySize moves the largest pods of all nodes first: small ones fit into what they leave.
func bySize(s *search, set map[string]bool) []*mover {
	order := byNode(s, set)
	slices.SortStableFunc(order, largestFirst)
	return order
}

// spent is whether the effort is, or nothing is left to be won: no plan goes below the bound.
func (s *search) spent() bool {
	return s.decisions() >= s.options.Effort || s.best != nil && len(s.names)-len(s.best.set) <= s.bound
}

func (s *search) decisions() int {
	n := 0
	for _, w := range s.worlds {
		n += w.decisions
	}
	return n
}

// shrink tries a set, and gives up nodes until all seeds confirm what is left.
func (s *search) shrink(ctx context.Context, set map[string]bool, order order) error {
	for {
		trials, err := s.tryAll(ctx, set, order(s, set))
		if err != nil {
			return err
		}
		least := leastDropped(trials)
		if least == nil {
			s.accept(set, trials[0].done)
			return nil
		}
		for node, why := range least.dropped {
			s.reasons[node] = why
		}
		set = least.emptying
		if s.best != nil && !s.better(set) {
			return nil
		}
	}
}

// leastDropped is the trial that has given up fewest nodes, of those that have given up any; nil: none has.
func leastDropped(trials []trial) (least *trial) {
	for i := range trials {
		if n := len(trials[i].dropped); n > 0 && (least == nil || n < len(least.dropped)) {
			least = &trials[i]
		}
	}
	return least
}

// tryAll tries a set with each seed, several at a time. It ends after those in which a node was given up.
func (s *search) tryAll(ctx context.Context, set map[string]bool, order []*mover) ([]trial, error) {
	var all []trial
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for seeds := range slices.Chunk(s.seeds, len(s.worlds)) {
		trials, errs := make([]trial, len(seeds)), make([]error, len(seeds))
		var group sync.WaitGroup
		for i, seed := range seeds {
			group.Go(func() { trials[i], errs[i] = s.worlds[i].try(ctx, set, order, seed) })
		}
		group.Wait()
		for _, err := range errs {
			if err != nil {
				return nil, err
			}
		}
		all = append(all, trials...)
		if leastDropped(trials) != nil {
			break
		}
	}
	return all, nil
}

func (s *search) cpu(set map[string]bool) (milli int64) {
	for name := range set {
		milli += s.nodes[name].Status.Capacity.Cpu().MilliValue()
	}
	return milli
}

func (s *search) better(set map[string]bool) bool {
	return cmp.Or(cmp.Compare(s.cpu(set), s.best.cpu), cmp.Compare(len(set), len(s.best.set))) > 0
}

func (s *search) accept(set map[string]bool, done []landing) {
	if s.best != nil && !s.better(set) {
		return
	}
	s.best = &found{set, done, s.cpu(set)}
	if s.options.Improved != nil {
		s.options.Improved(s.plan(s.best))
	}
}

// grow adds candidates to the best set: an eighth of them at a time, then fewer, then one by one, until none can be added or
// the effort is spent.
func (s *search) grow(ctx context.Context) error {
	for batch := max(1, len(s.candidates)/8); ; batch = max(1, batch/2) {
		before := s.best
		for more := range slices.Chunk(s.rest(), batch) {
			if _, err := s.extend(ctx, more); err != nil {
				return err
			}
		}
		if s.spent() || batch == 1 && s.best == before {
			return nil
		}
	}
}

// extend tries to add nodes to the best set, in each order, and says whether it has added any.
func (s *search) extend(ctx context.Context, more []string) (bool, error) {
	before := s.best
	set := maps.Clone(before.set)
	for _, name := range more {
		set[name] = true
	}
	for _, order := range []order{newLast, newFirst, byNode, bySize} {
		if s.spent() || s.best != before {
			break
		}
		if err := s.shrink(ctx, set, order); err != nil {
			return false, err
		}
	}
	return s.best != before, nil
}

// newLast moves the pods of the best set as they were moved, and then those of other nodes.
func newLast(s *search, set map[string]bool) []*mover {
	known, others := s.split(set)
	return append(known, others...)
}

// newFirst does so the other way round.
func newFirst(s *search, set map[string]bool) []*mover {
	known, others := s.split(set)
	return append(others, known...)
}

// split is the order in which the best set's pods were moved, and the pods of the set's other nodes.
func (s *search) split(set map[string]bool) (known, others []*mover) {
	for _, l := range s.best.done {
		known = append(known, l.mover)
	}
	more := maps.Clone(set)
	maps.DeleteFunc(more, func(name string, _ bool) bool { return s.best.set[name] })
	return known, bySize(s, more)
}

// explain finds out what would happen if a node were emptied beside the best set, of those that nobody has tried because
// the bound says that it cannot be. Where the effort is spent, they go without.
func (s *search) explain(ctx context.Context) error {
	if s.decisions() >= s.options.Effort {
		return nil
	}
	w := s.worlds[0]
	order, _ := s.split(s.best.set)
	if _, err := w.try(ctx, s.best.set, order, s.seeds[0]); err != nil {
		return err
	}
	for _, name := range s.rest() {
		if _, known := s.reasons[name]; known {
			continue
		}
		why, err := w.empty(name)
		if err != nil {
			return err
		}
		if why != "" {
			s.reasons[name] = why
		}
	}
	return nil
}

// rest are the candidates that the best plan keeps.
func (s *search) rest() []string {
	return slices.DeleteFunc(slices.Clone(s.candidates), func(name string) bool { return s.best.set[name] })
}

// plan puts into words what was found.
func (s *search) plan(f *found) *Plan {
	p := &Plan{
		SavedMilliCPU: f.cpu, NodesBefore: len(s.names), NodesAfter: len(s.names) - len(f.set),
		AtLeast: s.bound, Seeds: s.seeds, Decisions: s.decisions(),
	}
	for _, name := range s.names {
		switch {
		case !f.set[name]:
			p.Kept = append(p.Kept, Kept{name, s.keeps(name)})
		case len(s.nodes[name].movers) == 0:
			p.Steps = append(p.Steps, Step{Node: name})
		}
	}
	for _, l := range f.done {
		if n := len(p.Steps); n == 0 || p.Steps[n-1].Node != l.from {
			p.Steps = append(p.Steps, Step{Node: l.from})
		}
		step := &p.Steps[len(p.Steps)-1]
		step.Moves = append(step.Moves, Move{Pod: snapshot.Key(l.pod), Expected: l.to})
	}
	return p
}

func (s *search) keeps(name string) []string {
	if blocks := s.nodes[name].blocks; len(blocks) > 0 {
		return blocks
	}
	if why, ok := s.reasons[name]; ok {
		return []string{why}
	}
	return []string{"its room is needed for the pods of nodes that are emptied"}
}
