package run

import (
	"context"
	"encoding/json"
	"errors"

	"temper.dev/temper/lab/image"
	"temper.dev/temper/lab/plan"
	"temper.dev/temper/lab/workload"
)

// OpenWorkload gets a machine ready that has a user's services, and says what to run on it.
func OpenWorkload(ctx context.Context, o Options, f *workload.File) (*Lab, plan.Plan, error) {
	var p plan.Plan
	l, err := open(ctx, o, f.Arms, func(ctx context.Context, l *Lab, notify func(string)) (image.Archive, error) {
		client, err := l.assets.File("build/guest/" + f.Client.Program())
		if err != nil {
			return nil, err
		}
		a := image.Archive{}
		a.Program("bin/"+f.Client.Program(), client)
		// There is no name server.
		a.Data("etc/hosts", []byte("127.0.0.1 localhost\n::1 localhost\n"))
		programs := map[string]string{}
		for _, s := range f.Services {
			programs[s.Name], err = a.AddService(ctx, l.cache, s, notify)
			switch {
			case errors.Is(err, context.Canceled):
				return nil, interrupted()
			case err != nil:
				return nil, err
			}
		}
		p = f.Plan(programs)
		text, err := json.Marshal(p.Workload)
		a.Data(plan.WorkloadFile, text)
		return a, errors.Join(err, CheckPlan(p))
	})
	return l, p, err
}
