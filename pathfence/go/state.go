package pathfence

import (
	"encoding/json"
	"mime"
	"net/http"

	"temper.dev/temper/pathfence/go/core"
)

// ClassState is what is shown of a class; ../spec/state.md says what the members mean.
type ClassState struct {
	Name     string `json:"name"`
	Limit    int64  `json:"limit"`
	Reserve  int64  `json:"reserve"`
	InFlight int64  `json:"inFlight"`
	Queued   int64  `json:"queued"`
	Lent     int64  `json:"lent"`
	Granted  int64  `json:"granted"`
	Shed     int64  `json:"shed"`
	Missed   int64  `json:"missed"`
	Failed   int64  `json:"failed"`
	Knee     int64  `json:"knee"`
	Hold     int64  `json:"hold"` // nanoseconds
	Reason   string `json:"reason"`

	Keys []string `json:"keys"`
}

// State is what a fence says of itself.
type State struct {
	Off        bool         `json:"off"`
	Workers    int64        `json:"workers"`
	InFlight   int64        `json:"inFlight"`
	Waiting    int64        `json:"waiting"`
	WatchError *string      `json:"watchError"` // why the watched configuration is not in force; nil: it is, or there is none
	Classes    []ClassState `json:"classes"`
}

// State is how the fence is now.
func (f *Fence) State() State {
	f.mu.Lock()
	pool, classes, keys, watchError := f.core.Pool(), f.core.States(), f.core.Keys(), f.watchError
	f.mu.Unlock()
	s := State{Off: pool.Off, Workers: pool.Workers, InFlight: pool.InFlight, Waiting: pool.Waiting, WatchError: watchError, Classes: []ClassState{}}
	for _, c := range classes {
		s.Classes = append(s.Classes, stateOf(c, keys[c.Class]))
	}
	return s
}

func stateOf(c core.State, keys []string) ClassState {
	return ClassState{
		Name: c.Class, Limit: c.Limit, Reserve: c.Reserve, InFlight: c.InFlight, Queued: c.Queued, Lent: c.Lent,
		Granted: c.Granted, Shed: c.Shed, Missed: c.Missed, Failed: c.Failed, Knee: c.Knee, Hold: c.Hold, Reason: c.Reason,
		Keys: append([]string{}, keys...),
	}
}

// StateHandler shows the state, which `pathfence top` reads, and takes {"off": true} and {"off": false} by POST. It has no
// access control: serve it where metrics are served, not where users come.
func (f *Fence) StateHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Method {
		case http.MethodGet, http.MethodHead:
		case http.MethodPost:
			if kind, _, _ := mime.ParseMediaType(r.Header.Get("content-type")); kind != "application/json" {
				http.Error(w, "send content-type: application/json", http.StatusUnsupportedMediaType) // a foreign web page cannot
				return
			}
			var set struct{ Off *bool }
			if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<10)).Decode(&set); err != nil || set.Off == nil {
				http.Error(w, `send {"off": true} or {"off": false}`, http.StatusBadRequest)
				return
			}
			f.Off(*set.Off)
		default:
			w.Header().Set("allow", "GET, HEAD, POST")
			http.Error(w, "use GET or POST", http.StatusMethodNotAllowed)
			return
		}
		w.Header().Set("content-type", "application/json")
		_ = json.NewEncoder(w).Encode(f.State()) // a client that has gone needs none
	})
}
