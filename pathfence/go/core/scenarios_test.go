package core_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"temper.dev/temper/pathfence/go/core"
)

const ms = core.Time(1_000_000)

// script plays steps and writes them down.
type script struct {
	v   core.Vector
	f   *core.Fence
	now core.Time
	id  int64
}

// newScript has a target of 250 ms where the configuration names none.
func newScript(name, about string, cfg core.Config) *script {
	return bareScript(name, about, within250(cfg))
}

func within250(cfg core.Config) core.Config {
	cfg.Target = cmp.Or(cfg.Target, 250*ms)
	return cfg
}

func bareScript(name, about string, cfg core.Config) *script {
	f, err := core.New(cfg, 0)
	if err != nil {
		panic(err)
	}
	return &script{v: core.Vector{Name: name, About: about, Config: cfg}, f: f}
}

func (s *script) play(step core.Step) []core.Event {
	step, err := s.f.Play(step)
	if err != nil {
		panic(err)
	}
	s.v.Steps = append(s.v.Steps, step)
	return step.Then
}

// ticked lets time pass until a time, with a tick every 25 ms.
func (s *script) ticked(until core.Time) *script {
	for s.now/(25*ms)*(25*ms)+25*ms <= until {
		s.now = s.now/(25*ms)*(25*ms) + 25*ms
		s.play(core.Step{At: s.now, Do: "tick"})
	}
	s.now = until
	return s
}

func (s *script) arrive(key string) int64 { return s.offer(core.Step{Key: key}) }

func (s *script) offer(step core.Step) int64 {
	s.id++
	step.At, step.Do, step.ID = s.now, "arrive", s.id
	s.play(step)
	return s.id
}

// granted says whether the last step let its request through.
func (s *script) granted() bool {
	last := s.v.Steps[len(s.v.Steps)-1]
	return slices.ContainsFunc(last.Then, func(e core.Event) bool { return e.Do == "grant" && e.ID == last.ID })
}

func (s *script) done(id int64, outcome core.Outcome) {
	s.play(core.Step{At: s.now, Do: "done", ID: id, Outcome: outcome})
}

func (s *script) after(d core.Time) *script { s.now += d; return s }

func (s *script) state() core.Vector {
	s.play(core.Step{At: s.now, Do: "state"})
	return s.v
}

// known gives a class of one key whose requests take 10 ms: alone, it has all workers from the start.
func known(name string) core.ClassConfig {
	return core.ClassConfig{Name: name, Keys: []string{name}, Hold: 10 * ms}
}

func classes(names ...string) (out []core.ClassConfig) {
	for _, n := range names {
		out = append(out, core.ClassConfig{Name: n, Keys: []string{n}})
	}
	return out
}

// vectors builds all scenarios.
func vectors() []core.Vector {
	return []core.Vector{
		reserve(), expired(), late(), full(), newest(), keys(), learned(), learnedEdge(), learnedNames(), ownAgain(), depth(), inherit(), cancel(), nestedFull(), aim(), withoutEdges(), bursts(), kept(), retargeted(), togetherLate(), light(), resumed(), unknown(), cold(), coldSmall(), shortened(),
		clockStep(), pause(), silence(), backlog(), reload(), offOn(), switched(), panicking(), heldAll(), crowded(), lowRate(), stalled(), stoodAlone(), duplicates(),
		played("slow", "4 workers; below one path the downstream gets ten times slower, and recovers", slowWorld(1), core.Parts{}),
		played("freeze", "the downstream of one path stands still for 400 of every 500 ms", freezeWorld(), core.Parts{}),
		played("surge", "one path surges while the other is nearly idle", surgeWorld(), core.Parts{}),
		played("held-up", "one path surges while all that is called stands still for 30 of 150 ms", heldUpWorld(), core.Parts{}),
		played("parts", "slow, without protection, newest-first and panic", slowWorld(2), core.Parts{NoProtect: true, NoNewest: true, NoPanic: true}),
		played("undo", "a downstream that takes long whatever is in flight: a cut costs goodput, and is undone", longWorld(), core.Parts{}),
		learning(), thrashing(), longer(), failing(), wide(), together(), shaken(), suspects(), random("random-1", 92), random("random-2", 97),
	}
}

func reserve() core.Vector {
	s := newScript("reserve", "two classes on 4 workers: one borrows, one worker is kept, the other gets back what is its own", core.Config{Workers: 4, Classes: classes("a", "b")})
	var a []int64
	for range 5 {
		a = append(a, s.after(ms).arrive("a"))
	}
	b := s.after(ms).arrive("b")
	s.after(ms).arrive("b")
	s.after(ms).done(a[0], "")
	s.after(ms).done(a[1], "")
	s.after(ms).done(b, "")
	s.after(ms).done(a[2], "")
	return s.state()
}

func expired() core.Vector {
	s := newScript("expired", "what has passed its deadline is shed, whether the pool is busy or not", core.Config{Workers: 1, Classes: classes("a")})
	first := s.arrive("a")
	s.after(ms).offer(core.Step{Key: "a", Deadline: 40 * ms})
	s.after(ms).offer(core.Step{Key: "a", Deadline: 90 * ms})
	s.after(ms).offer(core.Step{Key: "a", Deadline: 1 * ms})
	s.ticked(60 * ms)
	s.ticked(95*ms).done(first, "")
	return s.state()
}

func late() core.Vector {
	s := newScript("late", "what cannot be in time any more is shed after the grace, once the queue has stood for the target, but not while nothing of the class is in flight", core.Config{Workers: 1, Classes: []core.ClassConfig{{Name: "a", Keys: []string{"a"}, Hold: 30 * ms, Target: 50 * ms}}})
	first := s.arrive("a")
	s.after(ms).offer(core.Step{Key: "a", Deadline: 100 * ms})
	s.after(ms).offer(core.Step{Key: "a", Deadline: 300 * ms})
	s.ticked(20 * ms)
	s.ticked(60 * ms)
	s.done(first, "")
	s.after(10 * ms).offer(core.Step{Key: "a", Deadline: s.now + 30*ms})
	s.ticked(150*ms).done(3, "")
	return s.state()
}

func light() core.Vector {
	s := newScript("light", "quick answers without success teach nothing where others take longer; slow ones do, and so do they where nothing else is known", core.Config{Workers: 16, Classes: append(classes("a", "b"), core.ClassConfig{Name: "c", Weight: 600})})
	serve := func(takes core.Time, outcome core.Outcome) {
		id := s.arrive("a")
		s.after(takes).done(id, outcome)
	}
	for range 3 {
		serve(2*ms, core.Light) // all that is known
	}
	s.state()
	serve(40*ms, core.OK) // now they are forgotten
	for range 12 {
		serve(2*ms, core.Light)
	}
	s.state()
	serve(90*ms, core.Light)
	serve(90*ms, core.Light)
	id := s.arrive("a")
	s.after(400*ms).done(id, core.Light) // late
	// What ends so says that the class gives back what it takes.
	for range 30 {
		var at []int64
		for range 12 {
			at = append(at, s.arrive("a"))
		}
		s.after(ms)
		for _, id := range at {
			s.done(id, core.Light)
		}
		s.ticked(s.now + 25*ms)
	}
	for range 16 { // 12 are kept for the other
		s.arrive("b")
	}
	return s.state()
}

func resumed() core.Vector {
	s := newScript("resumed", "a request that went on without a worker takes one again at once, however many are taken", core.Config{Workers: 2, Classes: classes("a", "b")})
	first := s.arrive("a")
	s.after(ms).done(first, core.Light)
	s.arrive("a")
	b := s.arrive("b")
	s.after(ms).arrive("b")
	resume := core.Step{At: s.now, Do: "resume", ID: first, Key: "a"}
	s.play(resume)
	s.play(resume) // it has one already
	s.state()
	s.after(ms).done(b, "") // as many as there are workers are at work still
	s.after(ms).done(first, core.Light)
	return s.state()
}

func unknown() core.Vector {
	s := newScript("unknown", "idle workers serve what is not known, all but one; whoever else waits comes first, and so does a bucket below its limit", core.Config{Workers: 8, Classes: classes("a")})
	for range 10 {
		s.after(ms).arrive("x")
	}
	for range 3 {
		s.after(ms).arrive("a")
	}
	s.after(ms).arrive("y") // in a bucket of its own
	for id := range int64(7) {
		s.after(ms).done(id+1, "")
	}
	for id := range int64(7) {
		s.after(ms).done(id+8, "")
	}
	// A class that borrows, too, comes before a bucket that has its limit, and less in flight.
	z := s.after(ms).arrive("z")
	s.after(ms).arrive("z")
	for range 6 {
		s.after(ms).arrive("a")
	}
	s.after(ms).arrive("z")
	s.after(ms).done(z, "")
	return s.state()
}

func cold() core.Vector {
	// a takes exactly what it may: as long as its target.
	s := newScript("cold", "what is asked for alone, and has yet to come back or takes longer than its target, leaves workers; a quick class takes all; a bucket's loans are not held against the others", core.Config{Workers: 24, Classes: []core.ClassConfig{{Name: "a", Keys: []string{"a"}, Hold: 250 * ms}}})
	arrive := func(key, edge string) int64 {
		id := s.after(ms).arrive(key)
		if s.granted() {
			s.play(core.Step{At: s.now, Do: "edge", ID: id, Edge: edge})
		}
		return id
	}
	s.after(70_000 * ms)
	var hung []int64
	for range 28 {
		hung = append(hung, arrive("x", "slow"))
	}
	y, z := arrive("y", "quick"), arrive("z", "other")
	v := arrive("v", "other") // waits
	for _, id := range []int64{y, z, v} {
		s.after(ms).done(id, "")
	}
	for range 8 {
		s.after(ms).done(arrive("y", "quick"), "")
	}
	s.after(400 * ms)
	for _, id := range hung {
		s.done(id, "")
	}
	// x and y have classes of their own now.
	for _, key := range []string{"a", "x", "x", "y"} {
		s.after(70_000 * ms)
		first := s.id + 1
		for range 28 {
			s.arrive(key)
		}
		if key == "x" {
			s.after(400 * ms)
		}
		for id := first; id <= s.id; id++ {
			s.after(ms).done(id, "")
		}
	}
	return s.state()
}

func shortened() core.Vector {
	s := newScript("shortened", "what a peer without trust has asked for in too short a time teaches nothing, if it ends within the target; such a peer cannot ask for more than that", core.Config{Workers: 4, Classes: classes("a")})
	serve := func(deadline, takes core.Time, outcome core.Outcome) {
		id := s.offer(core.Step{Key: "a", Deadline: s.now + deadline, Shortens: true})
		s.after(takes).done(id, outcome)
	}
	serve(100*ms, 90*ms, "")         // in time
	serve(100*ms, 101*ms, "")        // late for itself
	serve(100*ms, 250*ms, "")        // the same, and just in time for the target
	serve(100*ms, 251*ms, "")        // late
	serve(100*ms, 80*ms, core.Fail)  // nobody's doing but the downstream's
	serve(100*ms, 88*ms, core.Fail)  // what it calls has given up, a little before
	serve(100*ms, 150*ms, core.Fail) // and after
	serve(100*ms, 251*ms, core.Fail) // late, and failed
	serve(900*ms, 251*ms, "")        // late: 900 ms are not its to ask for
	for range 5 {
		s.after(ms).offer(core.Step{Key: "a", Deadline: s.now + 900*ms, Shortens: true})
	}
	s.ticked(s.now + 300*ms) // what waits has expired
	return s.state()
}

func nestedFull() core.Vector {
	s := newScript("nested-full", "so many may wait that are here for a second time or more; off, any number", core.Config{Workers: 1, Queue: 3, Classes: classes("a")})
	for range 5 {
		s.after(ms).offer(core.Step{Key: "a", Depth: 1})
	}
	s.play(core.Step{At: s.after(ms).now, Do: "off"})
	s.after(ms).offer(core.Step{Key: "a", Depth: 1})
	return s.state()
}

func aim() core.Vector {
	s := bareScript("aim", "the target is a second where none is named; another one is that of what is not known, and of what was learned, too", core.Config{Workers: 2})
	for range 8 {
		id := s.after(ms).arrive("learned")
		s.after(ms).done(id, "")
	}
	wait := func() {
		s.after(ms).arrive("learned")
		s.arrive("x")
	}
	wait() // is served
	wait()
	s.ticked(s.now + 1000*ms)
	wait()
	s.play(core.Step{At: s.now, Do: "reload", Config: &core.Config{Workers: 2, Target: 100 * ms}})
	wait()
	s.ticked(s.now + 125*ms)
	return s.state()
}

func withoutEdges() core.Vector {
	s := newScript("without-edges", "keys that use no edges have a class each, but for those that come when one class is left; such a class goes with its key, when that uses an edge; classes that reloads name fit beside them, 64 of them", core.Config{Workers: 8, Buckets: 2})
	learn := func(key, edge string) {
		for range 8 {
			id := s.after(ms).arrive(key)
			if edge != "" {
				s.play(core.Step{At: s.now, Do: "edge", ID: id, Edge: edge})
			}
			s.done(id, "")
		}
	}
	for i := range 4 {
		learn(fmt.Sprint("k", i), "")
	}
	for _, key := range []string{"k0", "k1"} { // the first takes its class along, the second moves into it
		id := s.after(ms).arrive(key)
		s.play(core.Step{At: s.now, Do: "edge", ID: id, Edge: "store"})
		s.done(id, "")
	}
	for i := range 31 {
		learn(fmt.Sprint("m", i), "")
	}
	learn("edged", "cache") // no class is left for it
	for _, key := range []string{"k0", "k1", "k2", "m0", "m27", "m28", "m30", "edged"} {
		s.after(ms).arrive(key)
	}
	s.state()
	for _, names := range [][2]int{{0, 32}, {32, 64}, {63, 65}} { // what is named has places of its own; the last is one too many
		var named []string
		for i := names[0]; i < names[1]; i++ {
			named = append(named, fmt.Sprint("n", i))
		}
		s.play(core.Step{At: s.after(ms).now, Do: "reload", Config: &core.Config{Workers: 8, Classes: classes(named...)}})
	}
	s.arrive("n40") // is listed
	s.arrive("n7")  // was
	return s.state()
}

func coldSmall() core.Vector {
	s := newScript("cold-small", "of three workers, one is for what is not known, by right", core.Config{Workers: 3, Classes: classes("a")})
	for _, key := range []string{"x", "x", "x", "y", "a"} {
		s.after(ms).arrive(key)
	}
	for id := range int64(4) {
		s.after(ms).done(id+1, "")
	}
	return s.state()
}

func full() core.Vector {
	s := newScript("full", "a queue that is full sheds its oldest; without newest-first, the one that comes", core.Config{Workers: 1, Queue: 3, Classes: classes("a")})
	for range 6 {
		s.after(ms).arrive("a")
	}
	s.play(core.Step{At: s.now, Do: "reload", Config: &core.Config{Workers: 1, Queue: 3, Target: 250 * ms, Classes: classes("a"), Without: core.Parts{NoNewest: true}}})
	s.after(ms).arrive("a")
	return s.state()
}

func newest() core.Vector {
	s := newScript("newest", "where requests take long, a queue whose head has waited is served from its end", core.Config{Workers: 1, Classes: []core.ClassConfig{{Name: "a", Keys: []string{"a"}, Hold: 50 * ms}}})
	first := s.arrive("a")
	for range 3 {
		s.after(8 * ms).arrive("a")
	}
	s.after(2*ms).done(first, "")
	s.after(2*ms).done(4, "")
	return s.state()
}

func keys() core.Vector {
	s := newScript("keys", "keys without a class share buckets by hash; keys that are not valid share the first", core.Config{Workers: 16, Buckets: 4, Classes: classes("a")})
	for _, k := range []string{"home", "user", "Order.Create", "/v1/items", "x y", "", "é", "a", "home2", "home3", "home4"} {
		s.after(ms).arrive(k)
	}
	for i := range 40 {
		s.after(ms).arrive(fmt.Sprint("forged-", i))
	}
	return s.state()
}

func learned() core.Vector {
	s := newScript("learned", "keys that use the same edges get one class, after eight completions without a new edge", core.Config{Workers: 8})
	for i := range 11 {
		for _, key := range []string{"home", "user", "post"} {
			id := s.after(ms).arrive(key)
			if i == 0 || key != "home" {
				s.play(core.Step{At: s.now, Do: "edge", ID: id, Edge: map[string]string{"home": "cache", "user": "store", "post": "store"}[key]})
			}
			s.after(ms).done(id, "")
		}
	}
	for _, key := range []string{"home", "user", "post"} {
		s.after(ms).arrive(key)
	}
	return s.state()
}

func learnedEdge() core.Vector {
	s := newScript("learned-edge", "a learned key that uses another edge moves to another class", core.Config{Workers: 8})
	for range 8 {
		id := s.after(ms).arrive("home")
		s.play(core.Step{At: s.now, Do: "edge", ID: id, Edge: "cache"})
		s.after(ms).done(id, "")
	}
	id := s.after(ms).arrive("home")
	s.play(core.Step{At: s.now, Do: "edge", ID: id, Edge: "audit"})
	s.after(ms).arrive("home")
	s.after(ms).done(id, "")
	return s.state()
}

func learnedNames() core.Vector {
	s := newScript("learned-names", "a learned class is named by its edges, or by its key; a name that is too long, or of an edge that has a + itself, ends with a hash", core.Config{Workers: 8})
	long := strings.Repeat("a", core.MaxName)
	learn := func(key string, edges ...string) {
		for range 8 {
			id := s.after(ms).arrive(key)
			for _, edge := range edges {
				s.play(core.Step{At: s.now, Do: "edge", ID: id, Edge: edge})
			}
			s.after(ms).done(id, "")
		}
	}
	learn("two", "store", "cache")
	learn("one", "cache+store")
	learn("none")
	learn(long)
	learn("long", long)
	return s.state()
}

func ownAgain() core.Vector {
	s := newScript("own-again", "a path whose class was its own goes to that of its first edge, and with its second back to its own, which has both then", core.Config{Workers: 8})
	serve := func(times int, key string, edges ...string) {
		for range times {
			id := s.after(ms).arrive(key)
			for _, edge := range edges {
				s.play(core.Step{At: s.now, Do: "edge", ID: id, Edge: edge})
			}
			s.after(ms).done(id, "")
		}
	}
	serve(8, "own")
	serve(8, "other", "store")
	serve(2, "own", "store")
	serve(2, "own", "cache")
	serve(9, "both", "cache", "store")
	return s.state()
}

func depth() core.Vector {
	s := newScript("depth", "a service that is called again below itself keeps a worker for each deeper level", core.Config{Workers: 3, Classes: []core.ClassConfig{known("a")}})
	for range 4 {
		s.after(ms).arrive("a")
	}
	s.after(ms).offer(core.Step{Key: "a", Depth: 2})
	s.after(ms).offer(core.Step{Key: "a", Depth: 1})
	s.after(ms).done(1, "")
	s.after(ms).done(5, "")
	s.after(ms).done(2, "")
	s.after(ms).offer(core.Step{Key: "a", Depth: 9})
	s.after(ms).done(3, "")
	s.ticked(300 * ms)
	s.ticked(301 * ms).arrive("a")
	s.after(ms).offer(core.Step{Key: "a", Depth: 1})
	return s.state()
}

func inherit() core.Vector {
	s := newScript("inherit", "parts of a request on its own pool run on its permit, which is given back with the last of them", core.Config{Workers: 1, Classes: classes("a")})
	root := s.arrive("a")
	one := s.after(ms).offer(core.Step{Key: "a", Parent: root})
	two := s.after(ms).offer(core.Step{Key: "a", Parent: one})
	s.after(ms).arrive("a")
	s.after(ms).done(root, "")
	s.after(ms).done(one, core.Fail)
	s.after(ms).done(two, "")
	return s.state()
}

func cancel() core.Vector {
	s := newScript("cancel", "clients that go away while they wait, and while they are served; after their deadline they have waited in vain", core.Config{Workers: 1, Target: 250 * ms, Classes: classes("a")})
	first := s.arrive("a")
	second := s.after(ms).arrive("a")
	s.after(ms).arrive("a")
	s.after(ms).done(second, core.Cancel)
	s.after(ms).done(first, core.Cancel)
	s.after(ms).done(first, core.Cancel)
	s.after(ms).done(3, "")
	leaves := func(in core.Step, after core.Time) {
		in.Key = "a"
		id := s.offer(in)
		s.after(after).done(id, core.Cancel)
		s.state()
	}
	leaves(core.Step{}, 250*ms)
	leaves(core.Step{}, 251*ms)                                        // missed
	leaves(core.Step{Deadline: s.now + 10*ms}, 11*ms)                  // missed
	leaves(core.Step{Deadline: s.now + 10*ms, Shortens: true}, 11*ms)  // of its own doing
	leaves(core.Step{Deadline: s.now + 10*ms, Shortens: true}, 251*ms) // missed
	return s.state()
}

func clockStep() core.Vector {
	s := newScript("clock-step", "a clock that goes back stands still until it has caught up", core.Config{Workers: 1, Classes: classes("a")})
	first := s.ticked(120 * ms).arrive("a")
	s.after(-50 * ms).arrive("a")
	s.after(20*ms).done(first, "")
	s.after(70 * ms).arrive("a")
	return s.state()
}

func pause() core.Vector {
	s := newScript("pause", "a window in which the process stood still teaches nothing", core.Config{Workers: 4, Classes: classes("a", "b")})
	for i := range 60 {
		s.ticked(core.Time(i+1) * 10 * ms)
		id := s.arrive("a")
		s.after(4*ms).done(id, "")
	}
	s.now += 400 * ms
	for range 40 {
		s.arrive("a")
		s.arrive("b")
	}
	s.ticked(s.now + 300*ms)
	return s.state()
}

// Requests of a are in flight while nothing is heard, for longer and longer; and in the end while b is heard.
func silence() core.Vector {
	s := newScript("silence", "a class whose requests do not come back while nothing at all is heard has not stalled; while others are heard it has", core.Config{Workers: 16, Classes: classes("a", "b")})
	for range 60 {
		id := s.arrive("a")
		s.after(4*ms).done(id, "")
		s.ticked(s.now + ms)
	}
	for _, quiet := range []core.Time{10 * ms, 30 * ms, 400 * ms} {
		var a []int64
		for range 3 {
			a = append(a, s.arrive("a"))
		}
		s.after(quiet).arrive("a")
		for _, id := range append(a, s.id) {
			s.after(ms).done(id, "")
		}
	}
	for range 3 {
		s.arrive("a")
	}
	for range 3 {
		s.after(10*ms).done(s.arrive("b"), "")
	}
	s.arrive("a")
	return s.state()
}

// Before a pause a may have nearly all workers. What comes at once after it is no sign that b usually wants so much; after
// a shorter one, of half a window, it is.
func backlog() core.Vector {
	s := newScript("backlog", "what has waited while the service stood still comes at once, and is forgotten with the window in which it came", core.Config{Workers: 8, Classes: classes("a", "b")})
	quickly := func(until core.Time) {
		for s.now < until {
			for _, key := range []string{"a", "b"} {
				id := s.arrive(key)
				s.ticked(s.now+5*ms).done(id, "")
			}
		}
	}
	lent := func() {
		first := s.id + 1
		for range 8 {
			s.arrive("a")
		}
		for id := first; id <= s.id; id++ {
			s.done(id, "")
		}
	}
	quickly(600 * ms)
	lent()
	for _, pause := range []core.Time{60 * ms, 400 * ms, 50 * ms} {
		quickly(s.now + 30*ms)
		s.after(pause)
		first := s.id + 1
		for range 40 {
			s.arrive("b")
		}
		for id := first; id <= s.id; id++ {
			s.done(id, "")
		}
		quickly(s.now + 300*ms)
		lent()
	}
	return s.state()
}

func reload() core.Vector {
	s := newScript("reload", "other workers, classes and weights under load; a configuration that is not valid is refused", core.Config{Workers: 4, Classes: classes("a", "b")})
	for range 5 {
		s.after(ms).arrive("a")
		s.after(ms).arrive("b")
	}
	more := classes("a", "c")
	more[0].Weight = 300
	s.play(core.Step{At: s.after(ms).now, Do: "reload", Config: &core.Config{Workers: 8, Target: 250 * ms, Classes: more}})
	s.after(ms).arrive("b")
	s.after(ms).arrive("c")
	s.play(core.Step{At: s.after(ms).now, Do: "reload", Config: &core.Config{Workers: 0}})
	s.play(core.Step{At: s.after(ms).now, Do: "reload", Config: &core.Config{Workers: 2, Target: 250 * ms, Classes: more}})
	for id := range int64(12) {
		s.after(ms).done(id+1, "")
	}
	return s.state()
}

func offOn() core.Vector {
	s := newScript("off-on", "off, the pool is plain: in order of arrival, nothing shed; on again, the fence goes on", core.Config{Workers: 2, Queue: 2, Classes: classes("a", "b")})
	for range 3 {
		s.after(ms).arrive("a")
	}
	s.play(core.Step{At: s.after(ms).now, Do: "off"})
	for range 3 {
		s.after(ms).arrive("a")
		s.after(ms).arrive("b")
	}
	s.ticked(400 * ms)
	for id := range int64(4) {
		s.after(ms).done(id+1, "")
	}
	s.play(core.Step{At: s.after(ms).now, Do: "on"})
	s.after(ms).arrive("b")
	s.after(ms).done(5, "")
	s.after(ms).done(7, "")
	return s.state()
}

func switched() core.Vector {
	cfg := within250(core.Config{Workers: 1, Queue: 2, Classes: []core.ClassConfig{known("a")}})
	s := newScript("switched", "a reload leaves the switch as it is, unless its off is another than before", cfg)
	shed := func() { // while the fence is on
		for range 4 {
			s.after(ms).arrive("a")
		}
	}
	reload := func(workers int64, off bool) {
		other := cfg
		other.Workers, other.Off = workers, off
		s.play(core.Step{At: s.after(ms).now, Do: "reload", Config: &other})
	}
	shed()
	s.play(core.Step{At: s.after(ms).now, Do: "off"})
	reload(2, false)
	shed()
	reload(3, true)
	reload(4, false)
	shed()
	reload(5, true)
	s.play(core.Step{At: s.after(ms).now, Do: "on"})
	reload(6, true)
	shed()
	return s.state()
}

func panicking() core.Vector {
	s := newScript("panic", "a class waits for its reserve while another holds what it borrowed: once something of the first has come back since its head came, the other may not borrow for a while", core.Config{Workers: 6, Classes: classes("a", "b")})
	var a, b []int64
	for range 7 {
		a = append(a, s.after(ms).arrive("a"))
	}
	s.ticked(30 * ms)
	for range 4 {
		b = append(b, s.after(ms).offer(core.Step{Key: "b", Deadline: 1000 * ms}))
		if len(b) == 3 {
			s.done(b[0], "") // as the one comes that is the head at the end of the window
		}
	}
	s.ticked(130*ms).done(b[1], "")
	s.ticked(210*ms).done(a[0], "")
	s.after(ms).done(a[1], "")
	for _, id := range b[2:] {
		s.after(ms).done(id, "")
	}
	for range 3 {
		s.after(ms).arrive("a")
	}
	s.ticked(1400 * ms)
	for range 3 {
		s.after(ms).arrive("a")
	}
	return s.state()
}

func heldAll() core.Vector {
	s := newScript("held-all", "a class that was alone holds every worker; another comes, has nothing in flight, and waits for its reserve", core.Config{Workers: 4, Classes: []core.ClassConfig{known("a"), known("b")}})
	s.after(61_000 * ms)
	for range 4 {
		s.arrive("a")
	}
	s.after(10 * ms).arrive("b")
	s.ticked(s.now + 220*ms)
	return s.state()
}

func crowded() core.Vector {
	names := []string{}
	for i := range 9 {
		names = append(names, fmt.Sprint("c", i))
	}
	s := newScript("crowded", "more classes than workers: each may have one, none all", core.Config{Workers: 4, Classes: classes(names...)})
	for range 5 {
		s.after(ms).arrive("c0")
	}
	for _, n := range names[1:] {
		s.after(ms).arrive(n)
	}
	for id := range int64(12) {
		s.after(ms).done(id+1, "")
	}
	return s.state()
}

func lowRate() core.Vector {
	s := newScript("low-rate", "a class of low rate keeps its profile, however late it is", core.Config{Workers: 8, Classes: []core.ClassConfig{{Name: "a", Keys: []string{"a"}, Limit: 8, Hold: 20 * ms}, {Name: "b", Keys: []string{"b"}, Limit: 3, Hold: 20 * ms}}})
	for i := range 12 {
		s.ticked(core.Time(i) * 400 * ms)
		id := s.arrive("a")
		s.ticked(s.now+350*ms).done(id, "")
	}
	return s.state()
}

func stalled() core.Vector {
	s := newScript("stall", "a class whose requests stop coming back gets no more workers, but one now and then", core.Config{Workers: 16, Classes: classes("a", "b")})
	for i := range 100 {
		s.ticked(core.Time(i+1) * 5 * ms)
		id := s.arrive("a")
		s.after(4*ms).done(id, "")
	}
	for range 30 {
		s.ticked(s.now + 5*ms).arrive("a")
	}
	s.ticked(s.now+100*ms).done(101, "")
	for i := range 6 {
		s.after(ms).done(int64(102+i), "")
	}
	return s.state()
}

// Class a may have nearly all workers as long as it gives them back quickly. Five times it stalls, and each time tells what
// it may have afterwards: less, where two of b's requests or more were answered while nothing of a came back.
func stoodAlone() core.Vector {
	s := newScript("alone", "a class that stalls is lent less afterwards if others were answered meanwhile, however its own stall ends, and not otherwise", core.Config{Workers: 16, Classes: classes("a", "b")})
	burst := func(key string, n int) (ids []int64) {
		for range n {
			ids = append(ids, s.arrive(key))
		}
		return ids
	}
	end := func(ids []int64) {
		for _, id := range ids {
			s.done(id, "")
		}
	}
	for range 30 { // so that 6 or 7 workers are kept for b
		at := s.now
		a, b := burst("a", 7), burst("b", 8)
		s.ticked(at + 8*ms)
		end(append(a, b...))
		s.ticked(at + 20*ms)
	}
	for i, answered := range [][]core.Outcome{{}, {"", core.Cancel}, {"", ""}, {}, {core.Fail, ""}} {
		for j := range 100 { // a window in which a gives back quickly
			at := s.now
			id := s.arrive("a")
			if j%20 == 0 {
				end(burst("b", 1))
			}
			s.ticked(at + ms)
			s.done(id, "")
		}
		a := burst("a", 20)
		for range 3 {
			s.play(core.Step{At: s.after(10 * ms).now, Do: "tick"})
		}
		for _, outcome := range answered {
			id := s.arrive("b")
			s.done(id, outcome)
		}
		s.after(ms).done(a[0], map[bool]core.Outcome{true: core.Cancel}[i == 2])
		end(a[1:])
		end(burst("a", 20))
		s.ticked(s.now/(100*ms)*(100*ms) + 200*ms) // a window in which a gets all that it asks for
	}
	return s.state()
}

func duplicates() core.Vector {
	s := newScript("duplicates", "an id that is known already, or unknown, changes nothing", core.Config{Workers: 1, Classes: classes("a")})
	first := s.arrive("a")
	s.play(core.Step{At: s.now, Do: "arrive", ID: first, Key: "a"})
	s.done(77, "")
	s.done(first, "")
	s.done(first, "")
	return s.state()
}
