package ladder

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// encoded is a histogram of latencies, as clients print it.
func encoded(t *testing.T, values ...int64) string {
	t.Helper()
	h := hdrhistogram.New(1, 3_600_000_000_000, 3)
	for _, v := range values {
		if err := h.RecordValue(v); err != nil {
			t.Fatal(err)
		}
	}
	text, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// object is what a client prints of a run; %s is its histogram.
const object = `{"wanted": 4, "sent": 4, "answered": 3, "errors": 1, "late": 0, "unit": "us", "histogram": "%s"}`

func TestWhatClientsPrint(t *testing.T) {
	three, one := encoded(t, 100, 2000, 30000), encoded(t, 400)
	log := "#[StartTime: 1441812279.474 (seconds since epoch)]\n" + `"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"` +
		"\n0.127,1.007,30.0," + three + "\nTag=put,1.134,0.999,0.4," + one + "\n"
	for _, test := range []struct {
		name, text, unit string
		counts           string // wanted, sent, answered, errors, late
		longest          float64
	}{
		{"an object", fmt.Sprintf(object, three), "", "4 4 3 1 0", 30e6},
		{"an object of ns", strings.Replace(fmt.Sprintf(object, three), `"us"`, `"ns"`, 1), "us", "4 4 3 1 0", 30e3},
		{"an object of several lines", "\n" + strings.ReplaceAll(fmt.Sprintf(object, three), ", ", ",\n") + "\n\n", "", "4 4 3 1 0", 30e6},
		{"a log of us", log, "us", "4 4 4 0 0", 30e6},
		{"a log of ms", "0,1,0.4," + one, "ms", "1 1 1 0 0", 400e6},
		{"a log without intervals", "#[nothing]\n", "us", "0 0 0 0 0", 0},
	} {
		p, err := readPrinted([]byte(test.text), test.unit)
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		if got := fmt.Sprint(p.Wanted, p.Sent, p.Answered, p.Errors, p.Late); got != test.counts {
			t.Errorf("%s: counts %s, want %s", test.name, got, test.counts)
		}
		const unit = 512 // ns, of the lab's own histograms
		if got := float64(p.latencies.Max()); math.Abs(got-test.longest) > unit+0.001*test.longest {
			t.Errorf("%s: longest %g ns, want %g", test.name, got, test.longest)
		}
	}
}

func TestWhatClientsMayNotPrint(t *testing.T) {
	three := encoded(t, 100, 2000, 30000)
	good := fmt.Sprintf(object, three)
	instead := func(part, other string) string { return strings.Replace(good, part, other, 1) }
	for _, test := range []struct{ name, text, unit, want string }{
		{"nothing", " \n", "us", "the client printed nothing; it is to print what it measured, as docs/start/workload.md shows it"},
		{"a log without a unit", "#[x]\n", "", "the client printed an HDR histogram log, which does not say its unit; write 'unit: us' (or ns, ms) beside its command"},
		{"a sentence", "#[x]\nRunning 4s test\n", "us", `line 2 that the client printed is no interval of an HDR histogram log, start,length,max,histogram: "Running 4s test"`},
		{"no histogram in a log", "0,1,2,HIST\n", "us", "line 1 that the client printed: "},
		{"a unit that is wrong", "#[x]\n0,1,2," + encoded(t, 100_000) + "\n", "ms", "line 2 that the client printed: a latency of 1m39.9995s is beyond 1m0s: is its unit ms?"},
		{"half an object", "{\n\"wanted\": 1,\n", "", "line 3 that the client printed: unexpected EOF"},
		{"a number that is none", "{\n\"wanted\": \"many\"}", "", "line 2 that the client printed: json: cannot unmarshal string into Go struct field printed.wanted of type int"},
		{"an unknown field", instead(`"late"`, `"tardy"`), "", `line 1 that the client printed: json: unknown field "tardy"`},
		{"two objects", good + good, "", "line 1 that the client printed: something follows the object"},
		{"no unit", instead(`"unit": "us", `, ""), "us", `the client printed no "unit"; an object has wanted, sent, answered, errors, late, unit, histogram`},
		{"an unknown unit", instead(`"us"`, `"s"`), "", `the client's latencies have the unit "s"; it is one of ns, us, ms`},
		{"no histogram", instead(three, "x"), "", "the client's histogram is not HDR, V2, compressed, in base64: "},
		{"another count", instead(`"answered": 3`, `"answered": 2`), "", "the client's histogram has 3 latencies, and it says that 2 requests were answered"},
		{"more than was sent", instead(`"sent": 4`, `"sent": 3`), "", "the client's counts do not add up: wanted 4, sent 3, answered 3, errors 1, late 0"},
		{"more than was wanted", instead(`"wanted": 4`, `"wanted": 3`), "", "the client's counts do not add up: wanted 3, sent 4, answered 3, errors 1, late 0"},
		{"less than none", instead(`"late": 0`, `"late": -1`), "", "the client's counts do not add up: wanted 4, sent 4, answered 3, errors 1, late -1"},
	} {
		_, err := readPrinted([]byte(test.text), test.unit)
		exact := !strings.HasSuffix(test.want, ": ") // what follows is a library's own text
		if err == nil || exact && err.Error() != test.want || !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("%s:\ngot  %v\nwant %s", test.name, err, test.want)
		}
	}
}

func TestFlawsOfClients(t *testing.T) {
	for _, test := range []struct {
		name string
		p    printed
		want string
	}{
		{"all", printed{Wanted: 1000, Sent: 1000, Answered: 1000}, ""},
		{"fewer by chance", printed{Wanted: 850, Sent: 850, Answered: 850}, ""},
		{"a hundredth of each", printed{Wanted: 1000, Sent: 990, Answered: 981, Errors: 9, Late: 9}, ""},
		{"another rate", printed{Wanted: 840, Sent: 840, Answered: 840}, "the client offered 840 requests, of 1000 that were wanted"},
		{"not sent", printed{Wanted: 1000, Sent: 989, Answered: 989}, "the client sent 989 requests, of 1000 that were wanted"},
		{"errors", printed{Wanted: 1000, Sent: 1000, Answered: 989, Errors: 11}, "the client counts 11 errors in 1000 requests"},
		{"late", printed{Wanted: 1000, Sent: 1000, Answered: 1000, Late: 11}, "the client sent 11 requests of 1000 late: what it measured is its own lateness"},
	} {
		if got := test.p.flaw(500, 2); got != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
}
