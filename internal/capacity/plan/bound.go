package plan

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// demand is an amount of each resource: thousandths of CPUs, bytes, pods, and whole units of others.
type demand map[corev1.ResourceName]int64

func demandOf(list corev1.ResourceList) demand {
	d := demand{}
	for name, quantity := range list {
		if name == corev1.ResourceCPU {
			d[name] = quantity.MilliValue()
		} else {
			d[name] = quantity.Value()
		}
	}
	return d
}

// add adds other so many times; to nil, too.
func (d *demand) add(other demand, times int64) {
	if *d == nil {
		*d = demand{}
	}
	for name, amount := range other {
		(*d)[name] += amount * times
	}
}

// share is the largest share that d is of what whole has.
func (d demand) share(whole demand) float64 {
	largest := 0.0
	for name, amount := range d {
		if of := whole[name]; of > 0 {
			largest = max(largest, float64(amount)/float64(of))
		}
	}
	return largest
}

func averageRoom(nodes []*corev1.Node) demand {
	sum := demand{}
	for _, node := range nodes {
		sum.add(demandOf(node.Status.Allocatable), 1)
	}
	for name := range sum {
		sum[name] /= int64(len(nodes))
	}
	return sum
}

// atLeast is a number of nodes that no plan goes below: those that cannot be emptied, and so many of the others as have the
// room for what does not fit beside the first. For each resource on its own, and as if pods could be cut in pieces: so it is
// a bound and not a plan.
func (p *problem) atLeast() int {
	var kept int
	var need demand
	var rooms []demand
	for _, m := range p.nodes {
		if len(m.blocks) == 0 {
			rooms = append(rooms, m.room)
			need.add(m.moved, 1)
			continue
		}
		kept++
		if !m.Spec.Unschedulable {
			need.add(m.free(), -1)
		}
	}
	most := 0
	for name, amount := range need {
		most = max(most, nodesFor(name, amount, rooms))
	}
	return kept + most
}

// free is the room that a node has left. None of a resource is less than that: a node may hold more than it offers, when what
// it offers has shrunk.
func (m *machine) free() demand {
	left := demand{}
	for name, amount := range m.room {
		left[name] = max(0, amount-m.moved[name])
	}
	return left
}

// nodesFor is the smallest number of nodes that have the amount together.
func nodesFor(name corev1.ResourceName, amount int64, rooms []demand) int {
	largest := slices.SortedFunc(slices.Values(rooms), func(a, b demand) int { return cmp.Compare(b[name], a[name]) })
	for n, room := range largest {
		if amount <= 0 {
			return n
		}
		amount -= max(0, room[name])
	}
	return len(rooms)
}
