package trial

import "temper.dev/temper/pathfence/bench/record"

// media is a media service after that of DeathStarBench, in two languages: the gateway, movie info and reviews are in Java,
// the other six services in C++. A movie page's request goes through Java, C++, Java and C++ again. What holds all reviews
// is disturbed: three of the eight paths use it. Half of the rates, as in the social network.
var media = Topology{
	start:      Run.startThrift,
	Share:      0.5,
	Disturbed:  "review store",
	BesideJava: []string{"movie page", "compose review", "users", "ratings", "cast", "plot"},
	Workers:    map[string]int{"gateway": 32},
	Quick:      []string{"review cache", "user cache", "movie cache"},
	Routes: []Route{
		gateway("read-reviews", record.Slowed, 6, to("movie page", to("reviews", to("review cache"), to("review store")))),
		gateway("read-user-reviews", record.Slowed, 3, to("users", to("user cache"), storedReviews)),
		gateway("compose-review", record.Slowed, 3, to("compose review", to("users", to("user cache")), rating, storedReviews)),

		gateway("read-movie-page", record.Innocent, 6, to("movie page", to("movie info", to("movie store"), cast, to("plot", to("plot store"))), to("reviews", to("review cache")))),
		gateway("search-movies", record.Innocent, 4, to("movie info", to("movie cache"), to("movie store"))),
		gateway("read-cast", record.Innocent, 3, to("movie info", to("movie cache"), cast)),
		gateway("rate-movie", record.Innocent, 3, rating),
		gateway("log-in", record.Innocent, 3, to("users", to("user cache"), to("user store"))),
	},
}

// What several paths call in the same way.
var (
	storedReviews = to("reviews", to("review store"))
	cast          = to("cast", to("cast store"))
	rating        = to("ratings", to("rating store"))
)

// gateway is a route from the gateway on.
func gateway(path, group string, weight float64, calls ...Hop) Route {
	return Route{path, group, weight, to("gateway", calls...)}
}
