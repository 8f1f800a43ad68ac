package report

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"temper.dev/temper/internal/base/fixture"
	"temper.dev/temper/internal/evidence/bench"
	"temper.dev/temper/internal/evidence/bench/benchtest"
)

func summary(t *testing.T) *bench.Summary {
	t.Helper()
	var records, aa []bench.Record
	for seed := range int64(3) {
		r := benchtest.Record(t, "chain", seed+1, "eevdf", "cpuidle", "temper")
		if seed == 1 {
			r.Arms[1].Steps[2].Valid, r.Arms[1].Steps[2].InvalidReason = false, "throttled <script>alert(1)</script>"
		}
		records = append(records, r, benchtest.Record(t, "memcached", seed+1, "cpuidle", "eevdf"))
		aa = append(aa, benchtest.Record(t, "chain", seed+11, "cpuidle", "cpuidle"))
	}
	s, err := bench.NewSummary(records, aa)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func html(t *testing.T, s *bench.Summary, step int) string {
	t.Helper()
	var b strings.Builder
	if err := WriteHTML(&b, s, step); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

var (
	outline = regexp.MustCompile(`(?s)<(h1|h2|h3|p|li|dt|tr|title|desc|pre|svg|section|summary)\b[^>]*>`)
	tags    = regexp.MustCompile(`<[^>]*>`)
	ids     = regexp.MustCompile(` id="([^"]*)"`)
	refs    = regexp.MustCompile(` aria-labelledby="([^"]*)"`)
)

// structure is the page without its style, one line for each heading, paragraph, table row and picture.
func structure(page string) string {
	_, body, _ := strings.Cut(page, "</head>")
	var lines []string
	body = strings.NewReplacer("</td>", " |", "</th>", " |").Replace(body)
	for _, piece := range strings.Split(outline.ReplaceAllString(body, "\n$1: "), "\n") {
		if text := strings.TrimSpace(tags.ReplaceAllString(piece, " ")); text != "" {
			lines = append(lines, strings.Join(strings.Fields(text), " "))
		}
	}
	return strings.Join(lines, "\n") + "\n"
}

func TestHTMLStructure(t *testing.T) {
	fixture.Golden(t, "report.txt", structure(html(t, summary(t), WorstStep)))
}

func TestHTMLOfWebHasMeanAndThroughput(t *testing.T) {
	s, err := bench.NewSummary([]bench.Record{benchtest.Record(t, "web", 1, "eevdf", "weight-1", "temper")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	page := structure(html(t, s, WorstStep))
	for _, want := range []string{"mean ms | over alone | requests a second | over alone |", "those of the scenario web resize images", "service throughput at every step >= 1"} {
		if !strings.Contains(strings.ReplaceAll(page, "&gt;", ">"), want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
}

// A reader finds each section from the top, in one row with what it comes to, and reads there of arms that are present only.
func TestHTMLBeginsWithItsContents(t *testing.T) {
	page := html(t, summary(t), WorstStep)
	head, body, _ := strings.Cut(page, "<main>")
	_, head, _ = strings.Cut(head, "<body>")
	links := regexp.MustCompile(`href="#([^"]*)"`)
	var linked []string
	for _, link := range links.FindAllStringSubmatch(head, -1) {
		linked = append(linked, link[1])
	}
	var sections []string
	for _, section := range regexp.MustCompile(`<section id="([^"]*)"`).FindAllStringSubmatch(body, -1) {
		sections = append(sections, section[1])
	}
	slices.Sort(linked)
	slices.Sort(sections)
	if !slices.Equal(linked, sections) {
		t.Errorf("linked %v, sections %v", linked, sections)
	}
	for _, link := range links.FindAllStringSubmatch(page, -1) {
		if !strings.Contains(page, ` id="`+link[1]+`"`) {
			t.Errorf("a link leads to %s, which is not there", link[1])
		}
	}
	for _, want := range []string{"<dt>eevdf</dt>", "<dt>cpuidle</dt>", "<dt>temper</dt>", "<em>spinners</em>", "<em>step</em>", "<em>floor</em>", "<em>bar</em>", "<em>arm</em>", "<th scope=\"col\">cpuidle</th>"} {
		if !strings.Contains(head, want) {
			t.Errorf("the head lacks %q", want)
		}
	}
	if strings.Contains(page, "eevdf-full") {
		t.Error("the page names an arm that did not run")
	}
	if strings.Contains(head, "<th scope=\"col\">temper</th>") { // it ran for one of two
		t.Error("a column is of an arm that one plan lacks")
	}
	if n := strings.Count(page, "geometric mean"); n != 1 {
		t.Errorf("the page explains the best arm overall %d times", n)
	}
}

func TestHTMLStandsAlone(t *testing.T) {
	page := html(t, summary(t), WorstStep)
	for _, foreign := range []string{"http:", "https:", "url(", "@import", "<script", "<link", "<img", " src="} {
		if strings.Contains(page, foreign) {
			t.Errorf("the page holds %q", foreign)
		}
	}
	for _, needed := range []string{"prefers-color-scheme:dark", `name="viewport"`, `lang="en"`, "&lt;script&gt;"} {
		if !strings.Contains(page, needed) {
			t.Errorf("the page lacks %q", needed)
		}
	}
	seen := map[string]bool{}
	for _, id := range ids.FindAllStringSubmatch(page, -1) {
		if seen[id[1]] {
			t.Errorf("id %s twice", id[1])
		}
		seen[id[1]] = true
	}
	for _, ref := range refs.FindAllStringSubmatch(page, -1) {
		for id := range strings.FieldsSeq(ref[1]) {
			if !seen[id] {
				t.Errorf("no element has the id %s", id)
			}
		}
	}
}

func TestCurveStep(t *testing.T) {
	s := summary(t)
	if page := html(t, s, 4); !strings.Contains(page, "Latency curve at 4 spinners") {
		t.Error("the asked step is not shown")
	}
	for i, want := range []int{2, 8} { // Temper's worst p99; without Temper the last step
		if got := pickStep(s.Pools[i], WorstStep); got != want {
			t.Errorf("%s: step %d, want %d", s.Pools[i].Plan(), got, want)
		}
	}
}

func TestReplayNamesEveryChoice(t *testing.T) {
	r := benchtest.Record(t, "memcached", 7, "temper", "cpuidle", "cpuidle")
	r.Bursty, r.WarmUp = true, 2
	p, err := bench.Pool([]bench.Record{r})
	if err != nil {
		t.Fatal(err)
	}
	want := "temper-lab ladder memcached --arms cpuidle,cpuidle,temper --steps 0,1,2,4,8 --cpus 2 --seconds 10 --seed 7 --kernel 6.18.15 --warm-up 2 --load 0.5 --bursty --quantum 50 --json seed7.json"
	if got := replay(p, p.Seeds[0]); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestReplayOfAWorkloadNeedsItsFile(t *testing.T) {
	p, err := bench.Pool([]bench.Record{benchtest.Plain("nginx", 3, map[string][]bench.Step{"temper": {benchtest.Step(0, 10, 0)}})})
	if err != nil {
		t.Fatal(err)
	}
	want := "temper-lab bench run FILE --kernel 6.18.15 # FILE describes nginx, with seed 3"
	if got := replay(p, p.Seeds[0]); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestWriteSVG(t *testing.T) {
	var b strings.Builder
	if err := WriteSVG(&b, summary(t).Pools[0]); err != nil {
		t.Fatal(err)
	}
	fixture.Golden(t, "picture.svg", b.String())
}
