package bench

import "testing"

func TestSpinnersThatAreCommands(t *testing.T) {
	for _, test := range []struct {
		spinner Spinner
		want    string
	}{
		{Spinner{}, ""},
		{Spinner{"gzip x", "runs"}, "A spinner is: gzip x. Its work is counted in runs."},
		{Spinner{"make", "lines"}, "A spinner is: make. Its work is counted in lines."},
		{Spinner{"ffmpeg -i x", "frame="}, `A spinner is: ffmpeg -i x. Its work is what it prints after "frame=".`},
	} {
		p := &Pooled{Conditions: conditionsOf(Record{Spinner: test.spinner})}
		if got := p.SpinnerText(); got != test.want {
			t.Errorf("%+v: got %q, want %q", test.spinner, got, test.want)
		}
	}
}
