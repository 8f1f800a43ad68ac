package run

import (
	"context"
	"encoding/json"
	"errors"

	"temper.dev/temper/lab/assets"
	"temper.dev/temper/lab/cache"
	"temper.dev/temper/lab/image"
	"temper.dev/temper/lab/plan"
	"temper.dev/temper/lab/workload"
)

// OpenWorkload gets a machine ready that has a user's services, and says what to run on it.
func OpenWorkload(ctx context.Context, o Options, f *workload.File) (*Lab, plan.Plan, error) {
	var p plan.Plan
	l, err := open(ctx, o, f.Arms, func(ctx context.Context, l *Lab, notify func(string)) (a image.Archive, err error) {
		if a, p, err = programsOf(ctx, l.cache, l.assets, f, notify); err != nil {
			return nil, err
		}
		text, err := json.Marshal(p.Workload)
		a.Data(plan.WorkloadFile, text)
		return a, err
	})
	return l, p, err
}

// programsOf are a user's services, their client and their background work, with what these need, and the plan of what to
// measure.
func programsOf(ctx context.Context, c cache.Folder, built assets.Folder, f *workload.File, notify func(string)) (image.Archive, plan.Plan, error) {
	a := image.Archive{}
	ours := []string{f.Client.Program()}
	if f.Background != nil {
		ours = append(ours, "work")
	}
	for _, name := range ours {
		if name == "" { // the client is a command
			continue
		}
		host, err := built.File("build/guest/" + name)
		if err != nil {
			return nil, plan.Plan{}, err
		}
		a.Program("bin/"+name, host)
	}
	a.AddUsers(f.Users)
	// There is no name server.
	a.Data("etc/hosts", []byte("127.0.0.1 localhost\n::1 localhost\n"))
	places := map[string]string{}
	for _, p := range f.Programs() {
		var err error
		places[p.Name], err = a.AddProgram(ctx, c, p, notify)
		switch {
		case errors.Is(err, context.Canceled):
			return nil, plan.Plan{}, interrupted()
		case err != nil:
			return nil, plan.Plan{}, err
		}
	}
	p := f.Plan(places)
	return a, p, CheckPlan(p)
}
