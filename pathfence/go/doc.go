// Package pathfence stops one slow kind of request from taking from the others what a service has little of.
//
// A service has a bounded number of workers, here permits: how many requests it can serve at once. Each path belongs to a
// class, with a reserve of permits and a limit that the fence learns. Idle permits are lent to other classes. A request waits
// before it is served, and is refused once it cannot be in time.
//
//	fence, err := pathfence.New(pathfence.Config{Service: "orders", Workers: 64})
//	...
//	server := http.Server{Handler: fence.Handler(mux)}
//	client := http.Client{Transport: pathfence.Transport(nil)}
//
// Package pathfencegrpc does the same for gRPC. The algorithm is in package core; it is one with PathFence's in Java and C++.
package pathfence
