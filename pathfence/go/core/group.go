package core

import "slices"

const (
	doubtful    = 2  // so many completions in a row that are no good make a class a suspect
	calmWindows = 10 // so many windows in which nothing was late make it none, unless it is the group's limit that sees to it
)

// grouping is what a class's group follows from.
type grouping struct {
	edges   Edges // that its requests use
	misses  int64 // completions in a row that were no good
	calm    int64 // windows since something was late, or kept from it by the group's limit
	suspect bool
	group   *group // nil: none
}

// group is of classes that use an edge, all of them suspects: those that are late together have a limit together.
type group struct {
	limited
	edge    string
	members []*class
}

// touch brings the sums up to now.
func (g *group) touch(now Time) {
	g.limited.touch(now, slices.ContainsFunc(g.members, func(c *class) bool { return len(c.queue) > 0 }))
}

// full says whether a class has all that it may have, or its group does.
func (c *class) full() bool {
	return c.inFlight >= c.cap() || c.group != nil && c.group.inFlight >= c.group.cap()
}

// uses notes that requests of a configured class use an edge.
func (f *Fence) uses(c *class, edge string) {
	if c.edges.Settled(edge) {
		return
	}
	c.edges.add(edge)
	if c.suspect {
		f.regroup()
	}
}

// judge looks at a completion: two in a row that are no good are hardly chance.
func (f *Fence) judge(c *class, good bool) {
	if good {
		c.misses = 0
		return
	}
	c.misses++
	c.calm = 0
	if c.misses >= doubtful {
		f.mistrust(c)
	}
}

// mistrust makes a class a suspect.
func (f *Fence) mistrust(c *class) {
	c.calm = 0
	if c.suspect || c.unknown || f.cfg.Off || f.cfg.Without.NoLearn {
		return
	}
	c.suspect = true
	f.regroup()
}

// contain lowers the limit of a group of which a member has stalled to twice what they hold together at other times, for
// the reasons for which that class's falls.
func (f *Fence) contain(g *group) {
	if g == nil {
		return
	}
	level := int64(0)
	for _, c := range g.members {
		level += c.level
	}
	g.touch(f.now)
	f.setLimit(&g.limited, min(g.limit, 2*level/1000+4), "stall")
}

// regroup divides the suspects: those that use the edge that most of them use are one group, and so on. An edge's group
// stays the same one while the edge has one.
func (f *Fence) regroup() {
	for _, c := range f.classes {
		c.touch(f.now)
	}
	var left []*class
	for _, c := range f.classes {
		c.group = nil
		if c.suspect {
			left = append(left, c)
		}
	}
	before := f.groups
	f.groups = nil
	for {
		edge, users := commonest(left)
		if users < 2 {
			return
		}
		g := f.groupOf(edge, before)
		f.groups = append(f.groups, g)
		left = slices.DeleteFunc(left, func(c *class) bool {
			if !slices.Contains(c.edges.all(), edge) {
				return false
			}
			g.add(c)
			return true
		})
	}
}

// commonest is the edge that most of the classes use, the first by name of equals, and how many do.
func commonest(classes []*class) (edge string, users int) {
	count := map[string]int{}
	for _, c := range classes {
		for _, e := range c.edges.all() {
			count[e]++
		}
	}
	for e, n := range count {
		if n > users || n == users && e < edge {
			edge, users = e, n
		}
	}
	return edge, users
}

// groupOf is an edge's group, without members: the one that it had before, or a new one.
func (f *Fence) groupOf(edge string, before []*group) *group {
	if i := slices.IndexFunc(before, func(g *group) bool { return g.edge == edge }); i >= 0 {
		g := before[i]
		g.members, g.inFlight = nil, 0
		return g
	}
	g := &group{edge: edge, limited: limited{name: "~edge:" + edge, limit: f.cfg.Workers}}
	g.touched = f.now
	return g
}

func (g *group) add(c *class) {
	if len(g.members) == 0 || c.target < g.target {
		g.target = c.target
	}
	g.members = append(g.members, c)
	g.inFlight += c.inFlight
	g.timely = g.timely || c.timely
	c.group = g
}

// closeGroups ends a window for the groups, then lets go of classes that were calm for long.
func (f *Fence) closeGroups(length Time, valid bool) {
	for _, g := range f.groups {
		g.touch(f.now)
		w := g.window
		g.window = window{touched: f.now}
		if !valid {
			g.sample = sample{}
			continue
		}
		for _, c := range g.members {
			if w.bound > 0 && !c.quicker(g) {
				c.calm = -1
			}
		}
		f.learn(&g.limited, w, length)
	}
	if valid {
		f.acquit()
	}
}

// quicker says whether a member's requests take less than half as long as the group's: it is not what is slow.
func (c *class) quicker(g *group) bool { return 2*c.hold < g.hold }

// acquit takes classes that were calm for long from the suspects.
func (f *Fence) acquit() {
	fewer := false
	for _, c := range f.classes {
		c.calm++
		if c.suspect && c.calm >= calmWindows {
			c.suspect, fewer = false, true
		}
	}
	if fewer {
		f.regroup()
	}
}
