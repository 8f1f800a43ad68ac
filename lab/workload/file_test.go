package workload

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/lab/plan"
)

const good = `name: shop
services:
  - name: store
    package: memcached
    command: [memcached, -p, "11211"]
    ready: 11211
  - name: front
    folder: app
    command: [bin/front, --verbose]
    environment: {STORE: "localhost:11211"}
    ready: 8080
    folders: [/var/lib/front]
    files:
      /etc/front.conf: front.conf
      /etc/motd: {text: hello}
client:
  http: {url: "http://shop.example:8080/cart?id=7"}
`

func TestAFileIsReadWithItsDefaults(t *testing.T) {
	f, err := parse("lab/shop.yaml", []byte(good))
	if err != nil {
		t.Fatal(err)
	}
	want := &File{
		Name: "shop", Load: 0.5, CPUs: 2, Arms: []string{"eevdf", "cpuidle", "temper"}, Steps: []int{0, 1, 2, 4, 8}, Seeds: []int64{1},
		Seconds: 4, WarmUp: 6,
		Client: plan.Client{HTTP: &plan.HTTPClient{Host: "shop.example:8080", Port: 8080, Target: "/cart?id=7", Connections: 32}},
		Services: []Service{
			{Port: 11211, Program: Program{Name: "store", Packages: []string{"memcached"}, Command: []string{"memcached", "-p", "11211"}, At: Place{"lab/shop.yaml", 5, 14}}},
			{Port: 8080, Program: Program{Name: "front", Folder: "lab/app", Command: []string{"bin/front", "--verbose"}, At: Place{"lab/shop.yaml", 9, 14},
				Environment: []string{"STORE=localhost:11211"}, Folders: []string{"/var/lib/front"},
				Files: []Item{{Guest: "/etc/front.conf", Host: "lab/front.conf"}, {Guest: "/etc/motd", Text: "hello"}}}},
		},
	}
	if !reflect.DeepEqual(f, want) {
		t.Errorf("got  %+v\nwant %+v", f, want)
	}
	p := f.Plan(map[string]string{"store": "/usr/bin/memcached", "front": "/srv/front/bin/front"})
	if got, want := fmt.Sprint(p.Workload.Services[1].Command), "[/srv/front/bin/front --verbose]"; got != want || p.Scenario != "shop" || p.Load != 0.5 {
		t.Errorf("plan %+v, command %s, want %s", p, got, want)
	}
}

// asking is the good file with another client.
func asking(client string) string {
	return good[:strings.Index(good, "client:")] + "client:\n  " + client + "\n"
}

func TestWhatAFileSays(t *testing.T) {
	more := func(lines string) string { return good + lines + "\n" }
	for name, test := range map[string]struct {
		text string
		of   func(*File) any
		want any
	}{
		"rate":         {more("rate: 100"), func(f *File) any { return []float64{f.Rate, f.Load} }, []float64{100, 0}},
		"load":         {more("load: 0.8"), func(f *File) any { return []float64{f.Rate, f.Load} }, []float64{0, 0.8}},
		"arms":         {more("arms: [temper, eevdf]"), func(f *File) any { return f.Arms }, []string{"temper", "eevdf"}},
		"steps":        {more("steps: [0, 16]"), func(f *File) any { return f.Steps }, []int{0, 16}},
		"seeds":        {more("seeds: [3, 4]"), func(f *File) any { return f.Seeds }, []int64{3, 4}},
		"times":        {more("seconds: 0.5\nwarmUp: 1"), func(f *File) any { return []float64{f.Seconds, f.WarmUp} }, []float64{0.5, 1}},
		"CPUs":         {more("cpus: 4"), func(f *File) any { return f.CPUs }, 4},
		"connections":  {strings.Replace(good, `id=7"`, `id=7", connections: 4`, 1), func(f *File) any { return f.Client.HTTP.Connections }, 4},
		"port of HTTP": {strings.ReplaceAll(strings.Replace(good, "shop.example:8080", "shop.example", 1), "8080", "80"), func(f *File) any { return f.Client.HTTP.Port }, 80},
		"memcached": {strings.Replace(good, `http: {url: "http://shop.example:8080/cart?id=7"}`, "memcached: {}", 1),
			func(f *File) any { return *f.Client.Memcached }, plan.MemcachedClient{Port: 11211}},
		"redis": {asking(`redis: {port: 8080}`), func(f *File) any { return *f.Client.Redis },
			plan.RedisClient{Port: 8080, Connections: 32, Keys: 1000, ValueSize: 100}},
		"redis with all": {asking(`redis: {port: 8080, connections: 1, keys: 2, valueSize: 3, writes: 0.5}`), func(f *File) any { return *f.Client.Redis },
			plan.RedisClient{Port: 8080, Connections: 1, Keys: 2, ValueSize: 3, Writes: 0.5}},
		"redis without writes": {asking(`redis: {port: 8080, writes: 0}`), func(f *File) any { return f.Client.Redis.Writes }, 0.0},
		"PostgreSQL": {asking(`postgres: {port: 8080, query: select $1}`), func(f *File) any { return *f.Client.Postgres },
			plan.PostgresClient{Port: 8080, Connections: 8, User: "postgres", Database: "postgres", Query: "select $1", Keys: 1000}},
		"PostgreSQL with all": {asking(`postgres: {port: 8080, connections: 1, user: u, database: d, setup: s, query: q, keys: 2}`), func(f *File) any { return *f.Client.Postgres },
			plan.PostgresClient{Port: 8080, Connections: 1, User: "u", Database: "d", Setup: "s", Query: "q", Keys: 2}},
		"command": {asking(`command: [load, "-r{rate}", "-d{seconds}"]`) + "rate: 10\n", func(f *File) any { return *f.Client.Command }, plan.CommandClient{Port: 8080}},
		"command with all": {asking(`{command: [./load], port: 11211, unit: us, package: p, environment: {RATE: "{rate}", FOR: "{seconds}"}}`) + "rate: 10\n",
			func(f *File) any { return []any{*f.Client.Command, *f.ClientProgram} }, []any{plan.CommandClient{Port: 11211, Unit: "us"},
				Program{Name: "client", Packages: []string{"p"}, Command: []string{"./load"}, Environment: []string{"RATE={rate}", "FOR={seconds}"}, At: Place{"f.yaml", 17, 13}}}},
		"command in the plan": {asking(`{command: [./load, "{rate}", "{seconds}"]}`) + "rate: 10\n", func(f *File) any {
			return f.Plan(map[string]string{"client": "/srv/client/load"}).Workload.Client.Command.Command
		}, []string{"/srv/client/load", "{rate}", "{seconds}"}},
		"packages": {strings.Replace(good, "package: memcached", "package: [memcached, libevent]", 1), func(f *File) any { return f.Services[0].Packages }, []string{"memcached", "libevent"}},
		"spinners": {good, func(f *File) any { return f.Background == nil && f.Plan(nil).Workload.Background == nil }, true},
		"background": {more("background: {package: sysbench, command: [sysbench, run]}"), func(f *File) any { return *f.Background },
			Background{Count: "runs", Program: Program{Name: "background", Packages: []string{"sysbench"}, Command: []string{"sysbench", "run"}, At: Place{"f.yaml", 18, 42}}}},
		"background in lines": {more("background: {command: [make], work: lines}"), func(f *File) any { return f.Background.Count }, "lines"},
		"background in the plan": {more(`background: {command: [./ffmpeg, -progress, "-"], environment: {A: b}, work: {counter: "frame="}}`), func(f *File) any {
			return *f.Plan(map[string]string{"background": "/srv/background/ffmpeg"}).Workload.Background
		}, plan.Background{Command: []string{"/srv/background/ffmpeg", "-progress", "-"}, Environment: []string{"A=b"}, Count: "counter", Counter: "frame="}},
		"no user":  {good, func(f *File) any { return f.Services[1].AsUser }, false},
		"root":     {strings.Replace(good, "ready: 8080", "ready: 8080\n    user: root", 1), func(f *File) any { return f.Services[1].AsUser }, false},
		"the user": {strings.Replace(good, "ready: 8080", "ready: 8080\n    user: service", 1), func(f *File) any { return f.Services[1].AsUser }, true},
	} {
		f, err := parse("f.yaml", []byte(test.text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if got := test.of(f); !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: got %v, want %v", name, got, test.want)
		}
	}
}

func TestBadFiles(t *testing.T) {
	without := func(part string) string { return strings.Replace(good, part, "", 1) }
	instead := func(part, other string) string { return strings.Replace(good, part, other, 1) }
	for name, test := range map[string]struct{ text, want string }{
		"nothing": {"", "f.yaml: the file is empty; write one as docs/start/workload.md shows it"},
		"no YAML": {"name: [", "f.yaml: yaml: line 1: did not find expected node content"},
		"a list":  {"[]", "f.yaml:1:1: a workload has fields: name, services, client, users, background, rate, load, cpus, arms, steps, seeds, seconds, warmUp"},
		"unknown field": {good + "stepz: [0]\n",
			`f.yaml:18:1: a workload has no field "stepz"; choose from name, services, client, users, background, rate, load, cpus, arms, steps, seeds, seconds, warmUp`},
		"unknown field of a service": {instead("    ready: 11211", "    port: 11211"),
			`f.yaml:6:5: a service has no field "port"; choose from name, package, folder, command, files, folders, environment, ready, user`},
		"unknown client": {instead("  http:", "  grpc:"), `f.yaml:17:3: a client has no field "grpc"; choose from http, memcached, redis, postgres, package, folder, command, files, folders, environment, port, unit`},
		"unknown arm": {good + "arms: [eevdf, tempr]\n", `f.yaml:18:15: no arm "tempr"; choose from eevdf, eevdf-full, cpuidle, cpuidle-lazy, ` +
			`weight-1, weight-10, weight-100, weight-1000, weight-10000, sched-idle, fifo, temper, temper-full, temper-reserved, simple, lavd, layered`},
		"arm that knows threads": {good + "arms: [layered]\n",
			"f.yaml:18:8: arm layered has to know the threads of a service, and knows those of the lab's own scenarios only; leave it out"},
		"arm with a policy": {good + "arms: [fifo]\n",
			"f.yaml:18:8: arm fifo has to know the threads of a service, and knows those of the lab's own scenarios only; leave it out"},
		"field twice":         {good + "name: shop\n", `f.yaml:18:1: "name" stands twice; leave one out`},
		"no name":             {without("name: shop"), "f.yaml:2:1: the workload has no name; give it one"},
		"a bad name":          {instead("shop", "My Shop"), `f.yaml:1:7: "My Shop" is no name; begin with a letter, and use up to 32 of a to z, 0 to 9 and -`},
		"name of the lab's":   {instead("shop", "chain"), "f.yaml:1:7: chain is the name of a scenario of the lab's own, and records are told apart by it; choose another, such as my-chain"},
		"no services":         {"name: x\n", "f.yaml:1:1: the workload has no services"},
		"empty services":      {"name: x\nservices: []\n", "f.yaml:2:11: services is a list of one or more; write [...]"},
		"no client":           {good[:strings.Index(good, "client")], "f.yaml:1:1: the workload has no client; choose from http, memcached, redis, postgres, command"},
		"an empty client":     {good[:strings.Index(good, "client")] + "client: {}\n", "f.yaml:16:9: a workload has one client; choose one of http, memcached, redis, postgres, command"},
		"both clients":        {good + "  memcached: {}\n", "f.yaml:17:3: a workload has one client; choose one of http, memcached, redis, postgres, command"},
		"service twice":       {instead("name: front", "name: store"), "f.yaml:7:5: two services are called store; give each its own"},
		"no command":          {without("    command: [memcached, -p, \"11211\"]\n"), "f.yaml:3:5: service store has no command; write its program and arguments, as [nginx, -q]"},
		"command as a text":   {instead(`[memcached, -p, "11211"]`, "memcached -p"), "f.yaml:5:14: command is a list of one or more; write [...]"},
		"package and folder":  {instead("folder: app", "folder: app\n    package: p"), "f.yaml:7:5: service front has both a package and a folder; leave one out"},
		"port twice":          {instead("ready: 8080", "ready: 11211"), "f.yaml:9:14: store and front both listen on port 11211; give each its own"},
		"nobody listens":      {instead("shop.example:8080", "shop.example"), "f.yaml:17:3: no service is ready on port 80, which the client asks; write 'ready: 80' in the service that does"},
		"no port":             {instead("ready: 8080", "ready: http"), `f.yaml:11:12: ready is a whole number from 1 to 65535, not "http"`},
		"https":               {instead("http://", "https://"), `f.yaml:17:15: "https://shop.example:8080/cart?id=7" is no URL that the client asks for; write http://localhost:8080/path`},
		"no url":              {instead(`url: "http://shop.example:8080/cart?id=7"`, ""), "f.yaml:17:9: the client has no url; write url: http://localhost:8080/"},
		"a relative file":     {instead("/etc/motd", "etc/motd"), `f.yaml:15:7: "etc/motd" is no place in the guest for a user's files; choose an absolute one, and none of /dev, /proc, /sys, /init, /plan.json, /workload.json`},
		"a file of the lab's": {instead("/etc/motd", "/init"), `f.yaml:15:7: "/init" is no place in the guest for a user's files; choose an absolute one, and none of /dev, /proc, /sys, /init, /plan.json, /workload.json`},
		"a folder in /proc":   {instead("/var/lib/front", "//proc/x"), `f.yaml:12:15: "//proc/x" is no place in the guest for a user's files; choose an absolute one, and none of /dev, /proc, /sys, /init, /plan.json, /workload.json`},
		"no query":            {asking("postgres: {port: 8080}"), "f.yaml:17:13: the client has no query; write query: select 1"},
		"too many keys":       {asking("redis: {port: 8080, keys: 1000001}"), `f.yaml:17:29: keys is a whole number from 1 to 1000000, not "1000001"`},
		"writes beyond":       {asking("redis: {port: 8080, writes: 2}"), `f.yaml:17:31: writes is a share, a number from 0 to 1, not "2"`},
		"a user there is not": {instead("ready: 8080", "ready: 8080\n    user: me"), `f.yaml:12:11: the guest has no user "me"; choose root or service`},
		"command and another": {asking("{command: [./load], http: {url: \"http://shop:8080/\"}}"), "f.yaml:17:3: a workload has one client; choose one of http, memcached, redis, postgres, command"},
		"a package of none":   {asking("{redis: {port: 8080}, package: p}"), "f.yaml:17:34: this is for a client that is a command, and redis is built in; leave it out"},
		"command without rate": {asking(`command: [./load, "{rate}", "{seconds}"]`),
			"f.yaml:17:3: a client that is a command cannot measure the saturation, and needs a rate; write rate: 1000"},
		"command without seconds": {asking(`command: [./load, "{rate}", "{second}"]`) + "rate: 10\n",
			"f.yaml:17:12: the client is not told {seconds}; write it in the command or the environment, where the program takes it"},
		"command and folder":             {asking("{command: [./load], folder: x, package: y}") + "rate: 10\n", "f.yaml:17:3: the client has both a package and a folder; leave one out"},
		"command's port":                 {asking(`{command: [./load, "{rate}", "{seconds}"], port: 80}`) + "rate: 10\n", "f.yaml:17:3: no service is ready on port 80, which the client asks; write 'ready: 80' in the service that does"},
		"a unit there is not":            {asking(`{command: [./load], unit: s}`) + "rate: 10\n", `f.yaml:17:29: no unit "s"; choose ns, us or ms`},
		"a service of its name":          {instead("name: front", "name: client"), "f.yaml:7:5: client is no name for a service: the file has another part of that name; choose another"},
		"another background":             {good + "background: {ffmpeg: {}}\n", `f.yaml:18:14: a background has no field "ffmpeg"; choose from package, folder, command, files, folders, environment, work`},
		"idle background":                {good + "background: {package: sysbench}\n", "f.yaml:18:13: the background has no command; write its program and arguments, as [nginx, -q]"},
		"work of no kind":                {good + "background: {command: [x], work: cores}\n", `f.yaml:18:34: work is not counted in "cores"; choose runs, lines, or {counter: TEXT}`},
		"work of no counter":             {good + "background: {command: [x], work: {}}\n", `f.yaml:18:34: work has no counter; write counter: "frame="`},
		"no package":                     {instead("package: memcached", "package: []"), "f.yaml:4:14: package is a list of one or more; write [...]"},
		"a service of background's name": {instead("name: front", "name: background"), "f.yaml:7:5: background is no name for a service: the file has another part of that name; choose another"},
		"no variable":                    {instead("STORE:", `"A=B":`), `f.yaml:10:19: "A=B" sets no variable; write NAME: value`},
		"load and rate":                  {good + "load: 0.5\nrate: 10\n", "f.yaml:1:1: both rate and load say what is offered; leave one out"},
		"load beyond":                    {good + "load: 1.5\n", `f.yaml:18:7: load is a number above 0, up to 1, not "1.5"`},
		"load that is none":              {good + "load: .nan\n", `f.yaml:18:7: load is a number above 0, up to 1, not ".nan"`},
		"a step below":                   {good + "steps: [-1]\n", `f.yaml:18:9: a step, of background spinners, is a whole number from 0 to 256, not "-1"`},
		"a seed twice":                   {good + "seeds: [1, 1]\n", "f.yaml:18:12: seed 1 stands twice, and would give the same figures; leave one out"},
		"too many CPUs":                  {good + "cpus: 17\n", `f.yaml:18:7: cpus is a whole number from 1 to 16, not "17"`},
	} {
		_, err := parse("f.yaml", []byte(test.text))
		if err == nil || err.Error() != test.want || exit.StatusOf(err) != exit.Config {
			t.Errorf("%s:\ngot  %v (status %d)\nwant %s", name, err, exit.StatusOf(err), test.want)
		}
	}
}
