package run

import (
	"bytes"
	"context"
	"time"

	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/lab/plan"
	"temper.dev/temper/lab/survey"
)

// SurveyOptions say what to try on each kernel.
type SurveyOptions struct {
	Kernels []string // series, versions or releases
	Suite   string   // the functional tests, a program; "": only attach
}

// How long a fast guest may take on a busy host: to attach, and for all functional tests.
const mostAttach, mostSuite = 5 * time.Minute, 40 * time.Minute

// Survey tries the scheduler on kernel after kernel, and hands each report to done.
func Survey(ctx context.Context, options Options, o SurveyOptions, done func(survey.Report)) error {
	for _, kernel := range o.Kernels {
		options.Kernel = kernel
		l, err := Open(ctx, options, []string{plan.Temper})
		if err != nil {
			return err
		}
		r, err := l.survey(ctx, o.Suite)
		if err != nil {
			return err
		}
		done(r)
	}
	return nil
}

func (l *Lab) survey(ctx context.Context, suite string) (survey.Report, error) {
	r := survey.Report{Release: l.Kernel.Release}
	var out bytes.Buffer
	void := func(error) { out.Reset(); r.LostGuests++ }
	status, err := l.Exec(ctx, ExecOptions{CPUs: 2, Argv: []string{"sh", "-c", survey.Load}, Deadline: mostAttach, Output: &out, Again: void})
	if err != nil {
		return r, err
	}
	if err := r.Loaded(status, out.String()); err != nil || r.Refused != "" || suite == "" {
		return r, err
	}
	out.Reset()
	_, err = l.Exec(ctx, ExecOptions{
		CPUs: 2, Deadline: mostSuite, Output: &out, Again: void,
		Argv:  []string{"/suite", "-test.v", "-test.skip", survey.Skip},
		Files: map[string]string{"/suite": suite},
	})
	if ctx.Err() != nil {
		return r, exit.New(exit.Interrupted, "", "interrupted")
	}
	r.Tested(out.String(), err)
	return r, nil
}
