package trial

import (
	"fmt"
	"slices"
	"time"

	"temper.dev/temper/pathfence/bench/load"
	"temper.dev/temper/pathfence/bench/record"
)

const shopFront = "front"

// shop is a shop in Spring Boot. Only the front end has the arm. The others work, the orders too, which call the cart; they
// are what is disturbed.
var shop = Topology{
	start: Run.startShop,
	Routes: []Route{
		{"browse", record.Innocent, 1, to(shopFront, to("catalogue"))},
		{"cart", record.Innocent, 1, to(shopFront, to("cart"))},
		{"checkout", record.Slowed, 1, to(shopFront, to("orders", to("cart")))},
	},
	Disturbed: "orders",
	Share:     1,
	Settling:  5 * time.Second, // classes are loaded, and compiled, by requests
}

// startShop starts all services at the same time, since virtual machines take long, and then tells each where those are that
// it calls.
func (r Run) startShop(s *set) error {
	t := r.Disturbance.topology
	members := t.members()
	lines := make([][]string, len(members))
	for i, m := range members {
		lines[i] = r.shopLine(m)
	}
	processes, err := s.addAll(lines)
	if err != nil {
		return err
	}
	up := map[string]running{}
	for i, m := range members {
		up[m.name] = running{m, processes[i]}
	}
	if err := introduce(up); err != nil {
		return err
	}
	ports, err := t.entries(up)
	if err != nil {
		return err
	}
	s.disturbed, s.client = up[t.Disturbed].process, load.NewHTTP(t.addresses(ports))
	return nil
}

// shopLine is the command line of one of the shop's services.
func (r Run) shopLine(m member) []string {
	t := r.Disturbance.topology
	line := slices.Concat(r.Shop, []string{m.name})
	if m.name == shopFront {
		line = append(line, r.Arm.service(t.server(m, r.Scale), nil)...)
	} else {
		line = append(line, "--workers", fmt.Sprint(t.threads(m.name, r.Scale)))
	}
	for _, called := range m.called() {
		line = append(line, "--downstream", called)
	}
	return line
}

// introduce tells each service where those are that it calls.
func introduce(up map[string]running) error {
	for _, caller := range up {
		for _, called := range caller.called() {
			port, err := up[called].port("service")
			if err != nil {
				return err
			}
			if err := caller.process.Say(fmt.Sprintf("downstream %s %d", called, port)); err != nil {
				return fmt.Errorf("%s: %w", caller.name, err)
			}
		}
	}
	return nil
}

// addresses are where clients ask for each path: the front end has a page for each, any other one of its own name.
func (t Topology) addresses(ports map[string]int) map[string]string {
	addresses := map[string]string{}
	for _, r := range t.Routes {
		page := r.Path
		if r.First.Name != shopFront {
			page = r.First.Name
		}
		addresses[r.Path] = fmt.Sprintf("http://127.0.0.1:%d/%s", ports[r.Path], page)
	}
	return addresses
}
