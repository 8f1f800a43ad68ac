package plan

import (
	"strings"

	"temper.dev/temper/internal/evidence/bench"
)

// Folders below ServicesFolder of commands that are no services. No service may be called so.
const (
	ClientName     = "client"
	BackgroundName = "background"
)

// WorkloadFile is where the guest finds a workload, if it has one.
const WorkloadFile = "/workload.json"

// ProgramFolders is where a guest looks for programs.
const ProgramFolders = "/bin:/usr/bin:/usr/sbin"

// ServicesFolder holds a folder for each service of a workload, where it starts.
const ServicesFolder = "/srv"

// Workload is what a user wants measured: services, each in a cgroup of its own below critical, and their client.
type Workload struct {
	Services []Service `json:"services"` // in the order to start
	Client   Client    `json:"client"`
	// Background is what runs beside, in place of spinners; nil: those.
	Background *Background `json:"background,omitempty"`
	Rate       float64     `json:"rate_rps,omitempty"` // that is offered; 0: the plan's load of measured saturation
}

// Service is one process, with what it starts.
type Service struct {
	Name        string   `json:"name"`
	Command     []string `json:"command"` // the first word is a path in the guest
	Environment []string `json:"environment,omitempty"`
	Port        int      `json:"port,omitempty"`    // on which it takes connections once it is ready; 0: it is ready at once
	AsUser      bool     `json:"as_user,omitempty"` // not root, which some refuse, but ServiceUser
}

// Background is a command that each background worker runs over and over (the load folder's work.c).
type Background struct {
	Command     []string `json:"command"` // the first word is a path in the guest
	Environment []string `json:"environment,omitempty"`
	Count       string   `json:"count"`             // CountRuns, CountLines or CountCounter
	Counter     string   `json:"counter,omitempty"` // the text before a number of units that the command prints
}

// Spinner is what a record says of it.
func (b Background) Spinner() bench.Spinner {
	unit := b.Count
	if b.Count == CountCounter {
		unit = b.Counter
	}
	return bench.Spinner{Command: strings.Join(b.Command, " "), Unit: unit}
}

// What is counted as work.
const (
	CountRuns    = "runs"
	CountLines   = "lines"
	CountCounter = "counter"
)

// WorkerWord, in a background command or its environment, is the worker's number.
const WorkerWord = "{worker}"

// Client is what asks the services. Exactly one is set.
type Client struct {
	HTTP      *HTTPClient      `json:"http,omitempty"`
	Memcached *MemcachedClient `json:"memcached,omitempty"`
	Redis     *RedisClient     `json:"redis,omitempty"`
	Postgres  *PostgresClient  `json:"postgres,omitempty"`
	Command   *CommandClient   `json:"command,omitempty"`
}

// HTTPClient asks for one page (the load folder's httpload.c).
type HTTPClient struct {
	Host        string `json:"host"` // of the header; the server is on loopback
	Port        int    `json:"port"`
	Target      string `json:"target"`      // path and query
	Connections int    `json:"connections"` // of each client; there is one a CPU of the generator
}

// MemcachedClient asks for many values at once (the load folder's mcload.c).
type MemcachedClient struct {
	Port int `json:"port"`
}

// RedisClient gets and sets random keys (the load folder's redisload.c).
type RedisClient struct {
	Port        int     `json:"port"`
	Connections int     `json:"connections"`
	Keys        int     `json:"keys"` // all of them are set before the first request
	ValueSize   int     `json:"value_size"`
	Writes      float64 `json:"writes"` // share of requests that set
}

// PostgresClient runs one prepared statement (the load folder's pgload.c).
type PostgresClient struct {
	Port        int    `json:"port"`
	Connections int    `json:"connections"`
	User        string `json:"user"`
	Database    string `json:"database"`
	Setup       string `json:"setup"` // statements that are run before the first request
	Query       string `json:"query"`
	Keys        int    `json:"keys"` // $1 is a random number from 1 to this
}

// CommandClient is any program that offers a load by itself, and prints what it measured.
type CommandClient struct {
	Command     []string `json:"command"` // the first word is a path in the guest
	Environment []string `json:"environment,omitempty"`
	Port        int      `json:"port,omitempty"` // of a service; 0: none has one
	Unit        string   `json:"unit,omitempty"` // of an HDR histogram log's values, of Units
}

// Units of latencies, in ns.
var Units = map[string]float64{"ns": 1, "us": 1e3, "ms": 1e6}

// Words of a client's command and environment that its lab replaces.
const (
	AddressWord = "{address}"
	PortWord    = "{port}"
	RateWord    = "{rate}"
	SecondsWord = "{seconds}"
	SeedWord    = "{seed}"
)

// Program is the load generator of a client; "": the client is a command.
func (c Client) Program() string {
	switch {
	case c.Command != nil:
		return ""
	case c.HTTP != nil:
		return "httpload"
	case c.Redis != nil:
		return "redisload"
	case c.Postgres != nil:
		return "pgload"
	}
	return "mcload"
}

// Port is the one that the client connects to.
func (c Client) Port() int {
	switch {
	case c.Command != nil:
		return c.Command.Port
	case c.HTTP != nil:
		return c.HTTP.Port
	case c.Redis != nil:
		return c.Redis.Port
	case c.Postgres != nil:
		return c.Postgres.Port
	}
	return c.Memcached.Port
}
