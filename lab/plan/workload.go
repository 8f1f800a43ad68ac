package plan

// WorkloadFile is where the guest finds a workload, if it has one.
const WorkloadFile = "/workload.json"

// ServicesFolder holds a folder for each service of a workload, where it starts.
const ServicesFolder = "/srv"

// Workload is what a user wants measured: services, each in a cgroup of its own below critical, and their client.
type Workload struct {
	Services []Service `json:"services"` // in the order to start
	Client   Client    `json:"client"`
	Rate     float64   `json:"rate_rps,omitempty"` // that is offered; 0: the plan's load of measured saturation
}

// Service is one process, with what it starts.
type Service struct {
	Name        string   `json:"name"`
	Command     []string `json:"command"` // the first word is a path in the guest
	Environment []string `json:"environment,omitempty"`
	Port        int      `json:"port,omitempty"` // on which it takes connections once it is ready; 0: it is ready at once
}

// Client is what asks the services. Exactly one is set.
type Client struct {
	HTTP      *HTTPClient      `json:"http,omitempty"`
	Memcached *MemcachedClient `json:"memcached,omitempty"`
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

// Port is the one that the client connects to.
func (c Client) Port() int {
	if c.HTTP != nil {
		return c.HTTP.Port
	}
	return c.Memcached.Port
}
