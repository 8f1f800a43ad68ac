package pathfence

import (
	"fmt"
	"testing"
)

// What the fence itself costs a request: a permit, an edge, and the permit given back.
func BenchmarkRequest(b *testing.B) {
	fence, err := New(Config{Workers: 64})
	if err != nil {
		b.Fatal(err)
	}
	defer fence.Close()
	var requests []Request
	for i := range 8 {
		requests = append(requests, Request{Key: fmt.Sprintf("GET:/path%d", i)})
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		permit, err := fence.Acquire(b.Context(), requests[i%len(requests)])
		if err != nil {
			b.Fatal(err)
		}
		permit.Edge(requests[i%len(requests)].Key)
		permit.Release(OK)
	}
}
