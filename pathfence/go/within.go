package pathfence

import (
	"crypto/rand"
	"sync"
)

// calls are those under way that may come back to this process: from the name that a call is sent with to the request that
// makes it. A name is good for one arrival, and until the call is over: whoever else gets to know it can do nothing with it.
// All fences of the process share them: a chain of calls may go through several.
var calls sync.Map

// named gives a name for a call of the request.
func (s *Serving) named() (name string, end func()) {
	name = rand.Text()
	calls.Store(name, s)
	return name, func() { calls.Delete(name) }
}

const longestName = 64

// takeCaller is the request that makes a call, by the name that the call came with; nil: none of this process.
func takeCaller(name string) *Serving {
	if name == "" || len(name) > longestName {
		return nil
	}
	s, _ := calls.LoadAndDelete(name)
	caller, _ := s.(*Serving)
	return caller
}
