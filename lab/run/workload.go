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
		a := image.Archive{}
		if name := f.Client.Program(); name != "" {
			client, err := l.assets.File("build/guest/" + name)
			if err != nil {
				return nil, err
			}
			a.Program("bin/"+name, client)
		}
		if f.Background != nil {
			worker, err := l.assets.File("build/guest/work")
			if err != nil {
				return nil, err
			}
			a.Program("bin/work", worker)
		}
		// There is no name server.
		a.Data("etc/hosts", []byte("127.0.0.1 localhost\n::1 localhost\n"))
		places := map[string]string{}
		for _, p := range f.Programs() {
			var err error
			places[p.Name], err = a.AddProgram(ctx, l.cache, p, notify)
			switch {
			case errors.Is(err, context.Canceled):
				return nil, interrupted()
			case err != nil:
				return nil, err
			}
		}
		p = f.Plan(places)
		text, err := json.Marshal(p.Workload)
		a.Data(plan.WorkloadFile, text)
		return a, errors.Join(err, CheckPlan(p))
	})
	return l, p, err
}
