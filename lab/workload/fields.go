package workload

import (
	"cmp"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/evidence/bench"
	"temper.dev/temper/lab/plan"
)

const mostSeconds = 3600

func (r reader) file(n *yaml.Node, f *File) error {
	var client *yaml.Node
	err := r.mapping(n, "a workload",
		as("name", &f.Name, r.name),
		field{"services", func(n *yaml.Node) error { return r.services(n, f) }},
		field{"client", func(n *yaml.Node) error { client = n; return r.client(n, f) }},
		field{"users", func(n *yaml.Node) error { return r.users(n, f) }},
		field{"background", func(n *yaml.Node) error { return r.background(n, f) }},
		as("rate", &f.Rate, r.numbers(1e6)),
		as("load", &f.Load, r.numbers(1)),
		as("cpus", &f.CPUs, r.wholes(1, 16)),
		field{"arms", func(n *yaml.Node) error { return r.arms(n, f) }},
		field{"steps", func(n *yaml.Node) error { return r.steps(n, f) }},
		field{"seeds", func(n *yaml.Node) error { return r.seeds(n, f) }},
		as("seconds", &f.Seconds, r.numbers(mostSeconds)),
		as("warmUp", &f.WarmUp, r.numbers(mostSeconds)),
	)
	switch {
	case err != nil:
		return err
	case f.Name == "":
		return r.fail(n, "give it one", "the workload has no name")
	case len(f.Services) == 0:
		return r.fail(n, "", "the workload has no services")
	case client == nil:
		return r.fail(n, "choose from "+clientNames, "the workload has no client")
	case f.Rate != 0 && f.Load != 0:
		return r.fail(n, "leave one out", "both rate and load say what is offered")
	case f.Rate == 0 && f.Load == 0:
		f.Load = 0.5
	}
	if err := r.offered(client, f); err != nil {
		return err
	}
	return r.listened(client, f)
}

// listened wants a service for the client, and no port of two services.
func (r reader) listened(n *yaml.Node, f *File) error {
	of := map[int]string{}
	for _, s := range f.Services {
		if other := of[s.Port]; s.Port != 0 && other != "" {
			return s.At.Fail(exit.Config, "give each its own", "%s and %s both listen on port %d", other, s.Name, s.Port)
		}
		of[s.Port] = s.Name
	}
	if c := f.Client.Command; c != nil && c.Port == 0 { // the last one's, which is often the front end
		for _, s := range f.Services {
			c.Port = cmp.Or(s.Port, c.Port)
		}
	}
	if port := f.Client.Port(); port != 0 && of[port] == "" {
		return r.fail(n, fmt.Sprintf("write 'ready: %d' in the service that does", port), "no service is ready on port %d, which the client asks", port)
	}
	return nil
}

var goodName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,31}$`)

func (r reader) name(n *yaml.Node, what string) (string, error) {
	if n.Kind != yaml.ScalarNode || !goodName.MatchString(n.Value) {
		return "", r.fail(n, "begin with a letter, and use up to 32 of a to z, 0 to 9 and -", "%q is no name", n.Value)
	}
	if bench.IsScenario(n.Value) && what == "name" {
		return "", r.fail(n, "choose another, such as my-"+n.Value, "%s is the name of a scenario of the lab's own, and records are told apart by it", n.Value)
	}
	return n.Value, nil
}

func (r reader) arms(n *yaml.Node, f *File) error {
	f.Arms = nil
	return r.list(n, "arms", func(item *yaml.Node) error {
		var names []string
		for _, a := range plan.Arms {
			names = append(names, a.Name)
		}
		arm, ok := plan.FindArm(item.Value)
		if !ok {
			return r.fail(item, "choose from "+strings.Join(names, ", "), "no arm %q", item.Value)
		}
		if arm.ServicePolicy != "" || slices.Contains(arm.Command, plan.ServiceThreads) {
			return r.fail(item, "leave it out", "arm %s has to know the threads of a service, and knows those of the lab's own scenarios only", arm.Name)
		}
		f.Arms = append(f.Arms, arm.Name)
		return nil
	})
}

func (r reader) steps(n *yaml.Node, f *File) error {
	f.Steps = nil
	return r.list(n, "steps", func(item *yaml.Node) error {
		step, err := r.whole(item, "a step, of background spinners,", 0, 256)
		f.Steps = append(f.Steps, step)
		return err
	})
}

func (r reader) seeds(n *yaml.Node, f *File) error {
	f.Seeds = nil
	return r.list(n, "seeds", func(item *yaml.Node) error {
		seed, err := r.whole(item, "a seed", 1, 1<<31)
		if slices.Contains(f.Seeds, int64(seed)) {
			return r.fail(item, "leave one out", "seed %d stands twice, and would give the same figures", seed)
		}
		f.Seeds = append(f.Seeds, int64(seed))
		return err
	})
}

func (r reader) services(n *yaml.Node, f *File) error {
	return r.list(n, "services", func(item *yaml.Node) error {
		s := Service{Program: Program{At: r.place(item)}}
		err := r.mapping(item, "a service", append(
			[]field{as("name", &s.Name, func(n *yaml.Node, _ string) (string, error) { return r.name(n, "service") })},
			append(r.program(&s.Program),
				as("ready", &s.Port, r.wholes(1, mostPort)),
				field{"user", func(n *yaml.Node) error { return r.user(n, &s.AsUser) }},
			)...)...)
		switch {
		case err != nil:
			return err
		case s.Name == "":
			return r.fail(item, "give it one", "the service has no name")
		case s.Name == plan.ClientName || s.Name == plan.BackgroundName:
			return r.fail(item, "choose another", "%s is no name for a service: the file has another part of that name", s.Name)
		case slices.ContainsFunc(f.Services, func(o Service) bool { return o.Name == s.Name }):
			return r.fail(item, "give each its own", "two services are called %s", s.Name)
		}
		f.Services = append(f.Services, s)
		return r.complete(item, s.Program)
	})
}

// program are the fields of a program that a user names.
func (r reader) program(p *Program) []field {
	return []field{
		field{"package", func(n *yaml.Node) error { return r.packages(n, &p.Packages) }},
		as("folder", &p.Folder, r.hostPath),
		{"command", func(n *yaml.Node) error {
			p.At = r.place(n)
			return r.texts(n, "command", &p.Command)
		}},
		{"files", func(n *yaml.Node) error { return r.files(n, &p.Files) }},
		{"folders", func(n *yaml.Node) error { return r.folders(n, &p.Folders) }},
		{"environment", func(n *yaml.Node) error { return r.environment(n, &p.Environment) }},
	}
}

// packages are one, or a list.
func (r reader) packages(n *yaml.Node, to *[]string) error {
	if n.Kind == yaml.SequenceNode {
		return r.texts(n, "package", to)
	}
	name, err := r.text(n, "package")
	*to = []string{name}
	return err
}

// complete refuses a program that cannot be found or started.
func (r reader) complete(n *yaml.Node, p Program) error {
	switch {
	case len(p.Command) == 0:
		return r.fail(n, "write its program and arguments, as [nginx, -q]", "%s has no command", p.Who())
	case len(p.Packages) > 0 && p.Folder != "":
		return r.fail(n, "leave one out", "%s has both a package and a folder", p.Who())
	}
	return nil
}

func (r reader) background(n *yaml.Node, f *File) error {
	b := &Background{Program: Program{Name: plan.BackgroundName, At: r.place(n)}, Count: plan.CountRuns}
	err := r.mapping(n, "a background", append(r.program(&b.Program), field{"work", func(n *yaml.Node) error { return r.work(n, b) }})...)
	if err != nil {
		return err
	}
	f.Background = b
	return r.complete(n, b.Program)
}

// work says what is counted: runs, lines, or a number that the program prints.
func (r reader) work(n *yaml.Node, b *Background) error {
	switch {
	case n.Kind == yaml.MappingNode:
		b.Count = plan.CountCounter
		err := r.mapping(n, "work", as("counter", &b.Counter, r.text))
		if err == nil && b.Counter == "" {
			return r.fail(n, `write counter: "frame="`, "work has no counter")
		}
		return err
	case n.Value == plan.CountRuns || n.Value == plan.CountLines:
		b.Count = n.Value
		return nil
	}
	return r.fail(n, "choose runs, lines, or {counter: TEXT}", "work is not counted in %q", n.Value)
}

func (r reader) user(n *yaml.Node, asUser *bool) error {
	if n.Value != "root" && n.Value != "service" {
		return r.fail(n, "choose root or service", "the guest has no user %q", n.Value)
	}
	*asUser = n.Value == "service"
	return nil
}

var goodUser = regexp.MustCompile(`^[a-z_][a-z0-9_-]{0,31}$`)

func (r reader) users(n *yaml.Node, f *File) error {
	return r.list(n, "users", func(item *yaml.Node) error {
		switch name := item.Value; {
		case item.Kind != yaml.ScalarNode || !goodUser.MatchString(name):
			return r.fail(item, "begin with a letter or _, and use up to 32 of a to z, 0 to 9, _ and -", "%q is no user's name", name)
		case name == "root" || name == "service" || slices.Contains(f.Users, name):
			return r.fail(item, "leave it out", "the guest has a user %s already", name)
		default:
			f.Users = append(f.Users, name)
			return nil
		}
	})
}

func (r reader) hostPath(n *yaml.Node, what string) (string, error) {
	path, err := r.text(n, what)
	if err == nil && !filepath.IsAbs(path) {
		path = filepath.Join(r.folder, path)
	}
	return path, err
}

// reserved are places of the guest that are the lab's own.
var reserved = []string{"dev", "proc", "sys", "init", "plan.json", plan.WorkloadFile[1:]}

func (r reader) files(n *yaml.Node, files *[]Item) error {
	if n.Kind != yaml.MappingNode {
		return r.fail(n, "write /path/in/guest: path/on/host, or /path/in/guest: {text: ...}", "files is a mapping of paths")
	}
	for i := 0; i < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		item := Item{}
		var err error
		if item.Guest, err = r.guestPath(key); err != nil {
			return err
		}
		if value.Kind == yaml.MappingNode {
			err = r.mapping(value, "a file", as("text", &item.Text, r.text))
		} else {
			item.Host, err = r.hostPath(value, "a path of this host")
		}
		if err != nil {
			return err
		}
		*files = append(*files, item)
	}
	return nil
}

func (r reader) guestPath(n *yaml.Node) (string, error) {
	top, _, _ := strings.Cut(strings.TrimPrefix(filepath.Clean(n.Value), "/"), "/")
	if !strings.HasPrefix(n.Value, "/") || slices.Contains(reserved, top) || top == "" {
		return "", r.fail(n, "choose an absolute one, and none of /"+strings.Join(reserved, ", /"), "%q is no place in the guest for a user's files", n.Value)
	}
	return n.Value, nil
}

// folders are empty ones.
func (r reader) folders(n *yaml.Node, to *[]string) error {
	return r.list(n, "folders", func(item *yaml.Node) error {
		path, err := r.guestPath(item)
		*to = append(*to, path)
		return err
	})
}

func (r reader) environment(n *yaml.Node, to *[]string) error {
	if n.Kind != yaml.MappingNode {
		return r.fail(n, "write NAME: value", "environment is a mapping of names")
	}
	for i := 0; i < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Value == "" || strings.Contains(key.Value, "=") || value.Kind != yaml.ScalarNode {
			return r.fail(key, "write NAME: value", "%q sets no variable", key.Value)
		}
		*to = append(*to, key.Value+"="+value.Value)
	}
	return nil
}
