package lab

import (
	"context"
	"encoding/json"
	"errors"

	"temper.dev/temper/lab/plan"
	"temper.dev/temper/lab/workload"
)

// OpenWorkload gets a machine ready that has a user's services, and says what to run on it.
func OpenWorkload(ctx context.Context, o Options, f *workload.File) (*Lab, plan.Plan, error) {
	var p plan.Plan
	l, err := open(ctx, o, f.Arms, func(ctx context.Context, l *Lab, notify func(string)) (archive, error) {
		client, err := l.assets.file("build/guest/httpload")
		if err != nil {
			return nil, err
		}
		a := archive{}
		a.program("bin/httpload", client)
		// There is no name server.
		a.data("etc/hosts", []byte("127.0.0.1 localhost\n::1 localhost\n"))
		programs := map[string]string{}
		for _, s := range f.Services {
			if programs[s.Name], err = a.addUserService(ctx, l.cache, s, notify); err != nil {
				return nil, err
			}
		}
		p = f.Plan(programs)
		text, err := json.Marshal(p.Workload)
		a.data(plan.WorkloadFile, text)
		return a, errors.Join(err, CheckPlan(p))
	})
	return l, p, err
}
