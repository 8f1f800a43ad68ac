package trial

import (
	"slices"

	"temper.dev/temper/pathfence/bench/record"
)

// social is a social network after that of DeathStarBench: 17 services and 19 stores, all in memory, and 24 paths. What
// holds all posts of one author, the user timeline's store, is disturbed: a third of the paths use it. Half of the rates:
// a request makes about seven calls where those of the other topologies make two or four.
var social = Topology{
	start:     Run.startThrift,
	Share:     0.5,
	Disturbed: "user timeline store",
	// A front end has many workers, and what most paths need has more than others. No service has fewer than paths go
	// through it, so that each can have a part.
	Workers: map[string]int{"front end": 64, "post storage": 32},
	Quick:   []string{"post cache", "user timeline cache", "user cache", "graph cache", "media cache", "unique ids", "ads"},
	Without: []string{"unbounded", "unbounded with shedding"}, // asynchronous code is not what 17 times 1024 threads are
	Routes:  slices.Concat(socialSlowed, socialInnocent),
}

// What several paths call in the same way.
var (
	readPosts   = to("post storage", to("post cache"), to("post store"))
	cachedPosts = to("post storage", to("post cache"))
	writePost   = to("post storage", to("post store"))
	knownUser   = to("user", to("user cache"))
	storedUser  = to("user", to("user store"))
	notify      = to("notifications", to("notification store"))
	newID       = to("unique ids")
)

// front is a route from the front end on.
func front(path, group string, weight float64, calls ...Hop) Route {
	return Route{path, group, weight, to("front end", calls...)}
}

// compose is a route that writes a post: the user timeline's store takes it, too.
func compose(path string, weight float64, before ...Hop) Route {
	calls := append(slices.Clone(before), writePost, to("user timeline", to("user timeline store")))
	return front(path, record.Slowed, weight, to("compose", calls...))
}

var socialSlowed = []Route{
	front("read-user-timeline", record.Slowed, 8, to("user timeline", to("user timeline cache"), to("user timeline store"), readPosts)),
	front("read-own-timeline", record.Slowed, 4, to("user timeline", to("user timeline store"), cachedPosts)),
	compose("compose-text", 3, newID, to("text", to("mentions", knownUser))),
	compose("compose-with-link", 2, newID, to("text", to("links", to("link store")))),
	compose("compose-with-media", 2, newID, to("media", to("media store"))),
	compose("repost", 2, newID, to("favourites", to("favourite store"))),
	compose("edit-post", 1, to("text", to("mentions", knownUser))),
	compose("delete-post", 1, to("home timeline", to("home timeline store"))),
}

var socialInnocent = []Route{
	front("read-home-timeline", record.Innocent, 12, to("ads"), to("home timeline", to("home timeline store"), readPosts)),
	front("refresh-home-timeline", record.Innocent, 8, to("home timeline", to("home timeline store"), cachedPosts)),
	front("read-post", record.Innocent, 6, readPosts),
	front("search-posts", record.Innocent, 3, to("search", to("search index"), readPosts)),
	front("search-users", record.Innocent, 2, to("search", to("search index"), knownUser)),
	front("recommend-users", record.Innocent, 2, to("recommender", to("recommender store"), to("social graph", to("graph cache")))),
	front("read-profile", record.Innocent, 4, to("user", to("user cache"), to("user store"))),
	front("list-followers", record.Innocent, 2, to("social graph", to("graph cache"), to("graph store"))),
	front("follow", record.Innocent, 2, to("social graph", to("graph store")), notify),
	front("log-in", record.Innocent, 2, to("login", storedUser)),
	front("register", record.Innocent, 1, to("login", newID, storedUser)),
	front("read-media", record.Innocent, 6, to("media", to("media cache"), to("media store"))),
	front("favourite", record.Innocent, 3, to("favourites", to("favourite store")), notify),
	front("read-messages", record.Innocent, 2, to("messages", to("message store"), knownUser)),
	front("send-message", record.Innocent, 2, to("messages", newID, to("message store"), notify)),
	front("open-link", record.Innocent, 3, to("links", to("link store"))),
}
