package workload

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/lab/plan"
)

// clientNames are the clients that there are.
const clientNames = "http, memcached, redis, postgres, command"

// What clients have.
const (
	mostPort           = 65535
	mostConnections    = 1024 // ask.h
	mostKeys           = 1e6
	mostValue          = 1 << 20
	defaultConnections = 32
)

func (r reader) client(n *yaml.Node, f *File) error {
	p, own := Program{Name: plan.ClientName, At: r.place(n)}, plan.CommandClient{}
	var chosen []string
	var beside *yaml.Node // the first field that stands beside a command
	noted := func(o field, note func(*yaml.Node)) field {
		return field{o.name, func(n *yaml.Node) error {
			note(n)
			return o.read(n)
		}}
	}
	var fields []field
	for _, o := range r.builtIn(&f.Client) {
		fields = append(fields, noted(o, func(*yaml.Node) { chosen = append(chosen, o.name) }))
	}
	for _, o := range append(r.program(&p), as("port", &own.Port, r.wholes(1, mostPort)), as("unit", &own.Unit, r.unit)) {
		fields = append(fields, noted(o, func(n *yaml.Node) {
			if o.name == "command" {
				chosen = append(chosen, o.name)
			} else if beside == nil {
				beside = n
			}
		}))
	}
	err := r.mapping(n, "a client", fields...)
	switch {
	case err != nil:
		return err
	case len(chosen) != 1:
		return r.fail(n, "choose one of "+clientNames, "a workload has one client")
	case len(p.Command) > 0:
		f.Client.Command, f.ClientProgram = &own, &p
		return r.complete(n, p)
	case beside != nil:
		return r.fail(beside, "leave it out", "this is for a client that is a command, and %s is built in", chosen[0])
	}
	return nil
}

// builtIn are the clients that the lab has.
func (r reader) builtIn(c *plan.Client) []field {
	return []field{
		{"http", func(n *yaml.Node) (err error) { c.HTTP, err = r.httpClient(n); return err }},
		{"memcached", func(n *yaml.Node) error {
			c.Memcached = &plan.MemcachedClient{Port: 11211}
			return r.mapping(n, "a memcached client", as("port", &c.Memcached.Port, r.wholes(1, mostPort)))
		}},
		{"redis", func(n *yaml.Node) error {
			c.Redis = &plan.RedisClient{Port: 6379, Connections: defaultConnections, Keys: 1000, ValueSize: 100}
			return r.mapping(n, "a redis client",
				as("port", &c.Redis.Port, r.wholes(1, mostPort)),
				as("connections", &c.Redis.Connections, r.wholes(1, mostConnections)),
				as("keys", &c.Redis.Keys, r.wholes(1, mostKeys)),
				as("valueSize", &c.Redis.ValueSize, r.wholes(1, mostValue)),
				as("writes", &c.Redis.Writes, r.share))
		}},
		{"postgres", func(n *yaml.Node) (err error) { c.Postgres, err = r.postgresClient(n); return err }},
	}
}

func (r reader) unit(n *yaml.Node, what string) (string, error) {
	if _, known := plan.Units[n.Value]; !known {
		return "", r.fail(n, "choose ns, us or ms", "no unit %q", n.Value)
	}
	return n.Value, nil
}

// offered says what a client that is a command lacks to be told what to offer.
func (r reader) offered(n *yaml.Node, f *File) error {
	p := f.ClientProgram
	if p == nil {
		return nil
	}
	if f.Rate == 0 {
		return r.fail(n, "write rate: 1000", "a client that is a command cannot measure the saturation, and needs a rate")
	}
	words := strings.Join(append(slices.Clone(p.Command), p.Environment...), " ")
	for _, word := range []string{plan.RateWord, plan.SecondsWord} {
		if !strings.Contains(words, word) {
			return p.At.Fail(exit.Config, "write it in the command or the environment, where the program takes it", "the client is not told %s", word)
		}
	}
	return nil
}

func (r reader) postgresClient(n *yaml.Node) (*plan.PostgresClient, error) {
	c := &plan.PostgresClient{Port: 5432, Connections: 8, User: "postgres", Database: "postgres", Keys: 1000}
	err := r.mapping(n, "a PostgreSQL client",
		as("port", &c.Port, r.wholes(1, mostPort)),
		as("connections", &c.Connections, r.wholes(1, mostConnections)),
		as("user", &c.User, r.text),
		as("database", &c.Database, r.text),
		as("setup", &c.Setup, r.text),
		as("query", &c.Query, r.text),
		as("keys", &c.Keys, r.wholes(1, 1e9)),
	)
	if err == nil && c.Query == "" {
		return nil, r.fail(n, "write query: select 1", "the client has no query")
	}
	return c, err
}

func (r reader) httpClient(n *yaml.Node) (*plan.HTTPClient, error) {
	c := &plan.HTTPClient{Connections: defaultConnections}
	err := r.mapping(n, "an HTTP client",
		field{"url", func(n *yaml.Node) error { return r.url(n, c) }},
		as("connections", &c.Connections, r.wholes(1, mostConnections)),
	)
	if err == nil && c.Port == 0 {
		return nil, r.fail(n, "write url: http://localhost:8080/", "the client has no url")
	}
	return c, err
}

func (r reader) url(n *yaml.Node, c *plan.HTTPClient) error {
	u, err := url.Parse(n.Value)
	if err != nil || u.Scheme != "http" || u.Hostname() == "" || u.User != nil || u.Fragment != "" {
		return r.fail(n, "write http://localhost:8080/path", "%q is no URL that the client asks for", n.Value)
	}
	c.Host, c.Target, c.Port = u.Host, u.RequestURI(), 80
	if text := u.Port(); text != "" {
		if c.Port, err = strconv.Atoi(text); err != nil || c.Port < 1 || c.Port > 65535 {
			return r.fail(n, "", "%q has no port from 1 to 65535", n.Value)
		}
	}
	return nil
}
