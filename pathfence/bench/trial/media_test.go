package trial

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"temper.dev/temper/pathfence/bench/load"
	"temper.dev/temper/pathfence/bench/record"
	"temper.dev/temper/pathfence/bench/stage"
)

// The media service has as many services in either language as it is said to have: of virtual machines two CPUs carry few.
func TestMedia(t *testing.T) {
	java, cpp, stores := 0, 0, 0
	for _, m := range media.members() {
		switch {
		case m.store():
			stores++
		case media.server(m, Standard).BesideJava:
			cpp++
		default:
			java++
		}
	}
	if java != 3 || cpp != 6 || stores != 9 || len(media.of(record.Slowed)) != 3 || len(media.of(record.Innocent)) != 5 {
		t.Errorf("%d services in Java, %d in C++, %d stores, %d slowed and %d innocent paths", java, cpp, stores, len(media.of(record.Slowed)), len(media.of(record.Innocent)))
	}
	checkNames(t, media)
}

// Services in Java call some in C++, these call some in Java, and one request goes both ways: what travels with it goes
// through Java, C++, Java and C++ again.
func TestBorders(t *testing.T) {
	services := byName(media)
	inCpp := func(name string) bool { return slices.Contains(media.BesideJava, name) }
	pairs := map[string]int{}
	for _, m := range services {
		for _, called := range m.called() {
			if !services[called].store() {
				pairs[fmt.Sprintf("%v to %v", inCpp(m.name), inCpp(called))]++
			}
		}
	}
	if pairs["false to true"] == 0 || pairs["true to false"] == 0 {
		t.Errorf("calls between services, where true is C++: %v", pairs)
	}
	ways := map[string][]string{}
	for _, r := range media.Routes {
		var walk func(way string, h Hop)
		walk = func(way string, h Hop) {
			if services[h.Name].store() {
				ways[r.Path] = append(ways[r.Path], way)
				return
			}
			letter := "J"
			if inCpp(h.Name) {
				letter = "C"
			}
			for _, c := range h.Calls {
				walk(way+letter, c)
			}
		}
		walk("", r.First)
	}
	if !slices.Contains(ways["read-movie-page"], "JCJC") || !slices.Contains(ways["read-reviews"], "JCJ") {
		t.Errorf("requests go through %v", ways)
	}
}

// mediaLines are the command lines of some of the media service's services, with names in place of ports.
func mediaLines(t *testing.T, arm string, names ...string) (lines []string) {
	t.Helper()
	arms, err := Languages["java"].Named([]string{arm})
	if err != nil {
		t.Fatal(err)
	}
	r := Run{Programs: Programs{Node: "node", Service: []string{"java", "service"}}, Scale: media.scaled(Standard), Arm: arms[0], Disturbance: undisturbedMedia}
	up, called := map[string]running{}, []string{}
	for i, m := range media.members() {
		port := 1001 + i
		up[m.name] = running{m, &stage.Process{Ports: map[string]int{"service": port}}}
		called = append(called, fmt.Sprintf("=%d", port), "="+m.name)
	}
	for _, name := range names {
		line, err := r.memberLine(up[name].member, up)
		if err != nil {
			t.Fatal(err)
		}
		if i := slices.Index(line, "--fence"); i >= 0 {
			line[i+1] = "JSON" // TestServers looks into it
		}
		lines = append(lines, strings.NewReplacer(called...).Replace(strings.Join(line, " ")))
	}
	return lines
}

// A service has its language's program, and the arm's flags for that language. If it is fenced, it has a name, and passes on
// to services what travels with a request.
func TestMediaLines(t *testing.T) {
	const (
		info = "java service --workers 16" +
			" --downstream read-cast=movie cache --downstream read-cast=cast" +
			" --downstream read-movie-page=movie store --downstream read-movie-page=cast --downstream read-movie-page=plot" +
			" --downstream search-movies=movie cache --downstream search-movies=movie store"
		page = "node service --workers 16" +
			" --downstream read-movie-page=movie info --downstream read-movie-page=reviews" +
			" --downstream read-reviews=reviews"
		plot     = "node service --workers 16 --downstream read-movie-page=plot store"
		shedding = " --most 32 --target-ms 250"
	)
	for arm, flags := range map[string]struct{ java, cpp string }{
		record.Shared:                   {},
		"concurrency-limits, Vegas":     {" --admission vegas", shedding},
		"concurrency-limits, Gradient2": {" --admission gradient2", shedding},
		"resilience4j bulkhead":         {" --admission bulkhead", shedding + " --bulkhead"},
		record.Fence:                    {" --fence JSON", " --fence JSON"},
		record.Learned:                  {" --fence JSON", " --fence JSON"},
		"fence without lending":         {" --fence JSON", " --fence JSON"},
	} {
		want := []string{info + flags.java, page + flags.cpp, plot + flags.cpp}
		if strings.HasPrefix(arm, record.Fence) {
			want[0] += " --onward --name movie-info"
			want[1] += " --onward --name movie-page"
			want[2] += " --name plot"
		}
		for i, got := range mediaLines(t, arm, "movie info", "movie page", "plot") {
			if got != want[i] {
				t.Errorf("%s: %q, not %q", arm, got, want[i])
			}
		}
	}
	if got := mediaLines(t, record.Fence, "review cache", media.Disturbed); !slices.Equal(got, []string{"node downstream --threads 32 --percent 5", "node downstream --threads 4 --percent 100"}) {
		t.Errorf("stores: %q", got)
	}
}

// A fence is told the target, where all of what travels with a request is; others could not read it.
func TestStatedTarget(t *testing.T) {
	ports := map[string]int{"log-in": 1}
	plain, stating := load.NewThrift(ports), load.NewThriftStating(ports, Standard.Target)
	for _, c := range []struct {
		arm         Arm
		disturbance Disturbance
		want        *load.Thrift
	}{
		{wholeFence, undisturbedMedia, stating}, {learnedFence, undisturbedMedia, stating},
		{sharedPool, undisturbedMedia, plain}, {alone, undisturbedMedia, plain}, {capacity, undisturbedMedia, plain},
		{wholeFence, undisturbedSocial, stating}, {wholeFence, undisturbedNetwork, stating}, {wholeFence, undisturbed, plain},
	} {
		r := Run{Scale: Standard, Arm: c.arm, Disturbance: c.disturbance}
		if !reflect.DeepEqual(r.thrift(ports), c.want) {
			t.Errorf("%s, %s: another client", c.disturbance.Name, c.arm.Name)
		}
	}
}

// Its own paths alone are what it is held against, and what its disturbed store can serve, which is asked without anybody else.
func TestMediaRuns(t *testing.T) {
	s := Study{Language: "java", Scale: Standard, Timeline: Full, Arms: Languages["java"].Table}
	var err error
	if s.Disturbances, err = s.Choose([]string{record.MediaSlow}); err != nil {
		t.Fatal(err)
	}
	runs := s.repetition(0)
	got := names(runs)
	slices.Sort(got)
	want := []string{"media / alone", "media, slow tenfold / capacity"}
	for _, a := range Languages["java"].Table {
		want = append(want, "media, slow tenfold / "+a.Name)
	}
	if slices.Sort(want); !slices.Equal(got, want) {
		t.Errorf("a repetition has %q, not %q", got, want)
	}
	for _, r := range runs {
		if r.Scale.Slowed.Rate != 125 || r.Scale.Innocent.Rate != 75 || r.Scale.Slowed.Threads != 4 {
			t.Errorf("%s: %+v", r.Arm.Name, r.Scale)
		}
		if members := r.Disturbance.topology.members(); r.Arm.Name == record.Capacity && (len(members) != 1 || members[0].name != media.Disturbed) {
			t.Errorf("to measure what the store can serve, %v start", members)
		}
	}
}
