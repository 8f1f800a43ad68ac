package pathfence_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	pathfence "temper.dev/temper/pathfence/go"
	"temper.dev/temper/pathfence/go/internal/fencetest"
)

// Whatever requests do, and whatever is switched meanwhile, all permits come back, and whoever waits hears of it.
func TestNoPermitIsLost(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	fence, err := pathfence.New(pathfence.Config{Workers: 3, Target: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer fence.Close()
	var all sync.WaitGroup
	for g := range 16 {
		all.Add(1)
		go func() {
			defer all.Done()
			random := rand.New(rand.NewPCG(seed, uint64(g)))
			for range 2000 {
				once(t, fence, random)
			}
		}()
	}
	all.Wait()
	fencetest.Awaits(t, fence, "all permits are back", func(now pathfence.State) bool { return now.InFlight == 0 && now.Waiting == 0 })
}

// once is one request, or one switch.
func once(t *testing.T, fence *pathfence.Fence, random *rand.Rand) {
	switch random.IntN(100) {
	case 0:
		fence.Off(random.IntN(2) == 0)
	case 1:
		if err := fence.Reload(pathfence.Config{Workers: 2 + random.IntN(4), Target: 20 * time.Millisecond}); err != nil {
			t.Error(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if random.IntN(4) == 0 {
		go cancel()
	}
	permit, err := fence.Acquire(ctx, pathfence.Request{Key: fmt.Sprint("path", random.IntN(20)), Depth: int64(max(0, random.IntN(12)-8))})
	var refused *pathfence.RefusedError
	if err != nil && !errors.As(err, &refused) && !errors.Is(err, context.Canceled) {
		t.Errorf("a request is refused with %v", err)
	}
	if err != nil {
		return
	}
	for range random.IntN(4) {
		switch random.IntN(4) {
		case 0:
			permit.Pause()
		case 1:
			permit.Resume()
		case 2:
			permit.Edge(fmt.Sprint("edge", random.IntN(5)))
		case 3:
			permit.Answered()
		}
	}
	permit.Release([]pathfence.Outcome{pathfence.OK, pathfence.Fail, pathfence.Cancel, pathfence.Light}[random.IntN(4)])
	permit.Release(pathfence.OK) // only the first counts
}

func TestDo(t *testing.T) {
	failed := errors.New("it fails")
	for _, c := range []struct {
		name   string
		work   func(context.Context) error
		want   error
		failed int64
	}{
		{"well", func(context.Context) error { return nil }, nil, 0},
		{"an error", func(context.Context) error { return failed }, failed, 1},
		{"an edge", func(ctx context.Context) error { pathfence.PermitOf(ctx).Edge("db"); return nil }, nil, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			fence, err := pathfence.New(pathfence.Config{Workers: 1, Classes: []pathfence.Class{{Name: "it", Keys: []string{"it"}}}})
			if err != nil {
				t.Fatal(err)
			}
			defer fence.Close()
			if err := fence.Do(t.Context(), pathfence.Request{Key: "it"}, c.work); err != c.want {
				t.Errorf("it gives %v, want %v", err, c.want)
			}
			now := fence.State()
			if now.InFlight != 0 || now.Classes[0].Granted != 1 || now.Classes[0].Failed != c.failed {
				t.Errorf("in flight %d, granted %d, failed %d; want 0, 1, %d", now.InFlight, now.Classes[0].Granted, now.Classes[0].Failed, c.failed)
			}
		})
	}
}

func TestAConfigurationThatIsNotValid(t *testing.T) {
	for _, c := range []struct {
		name   string
		config pathfence.Config
		says   string
	}{
		{"no workers", pathfence.Config{}, "pathfence.Config: Workers is 0; it must be 1 to 4096"},
		{"a target that is too long", pathfence.Config{Workers: 1, Target: time.Hour}, "pathfence.Config: Target is 1h0m0s; it must be 1ms to 10m0s"},
		{"a service that is no name", pathfence.Config{Workers: 1, Service: "the shop"}, `Service is "the shop"; it must be 1 to 64 of`},
		{"a key twice", pathfence.Config{Workers: 1, Classes: []pathfence.Class{{Name: "a", Keys: []string{"k"}}, {Name: "b", Keys: []string{"k"}}}}, `pathfence.Config: class b: key "k" is given twice`},
		{"a target without a unit", pathfence.Config{Workers: 1, Target: 500}, "pathfence.Config: Target is 500ns; it must be 1ms to 10m0s"},
		{"a class's target", pathfence.Config{Workers: 1, Classes: []pathfence.Class{{Name: "a", Target: time.Hour}}}, "pathfence.Config: class a: Target is 1h0m0s; it must be 1ms to 10m0s"},
		{"a weight", pathfence.Config{Workers: 1, Classes: []pathfence.Class{{Name: "a", Weight: 2000}}}, "pathfence.Config: class a: Weight is 2000; it must be 1 to 1000"},
		{"a class without a name", pathfence.Config{Workers: 1, Classes: []pathfence.Class{{}}}, `pathfence.Config: class name "" is not valid: 1 to 64 of`},
		{"a class twice", pathfence.Config{Workers: 1, Classes: []pathfence.Class{{Name: "a"}, {Name: "a"}}}, `pathfence.Config: class name "a" is given twice`},
		{"a pattern as key", pathfence.Config{Workers: 1, Classes: []pathfence.Class{{Name: "a", Keys: []string{"GET /orders/{id}"}}}}, `KeyOf gives that of a pattern, here "GET:/orders/:id"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := pathfence.New(c.config); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("it gives %v, want %q", err, c.says)
			}
		})
	}
}
