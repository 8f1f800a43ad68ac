// Package guard says when overcommit is to pause, by what a cluster's nodes report.
//
// Problem: at a lowered request more pods come to a node than it was asked to hold. Where they all use what they asked for,
// standard work waits. Where Temper is not enforced, critical work does, too.
//
// Method: a node is fit while its tiers are enforced, the tiers above background leave it some CPU, and few of standard's waits
// are long. With too few fit nodes new pods keep their requests, at once. They are lowered again when enough nodes have been
// calm for a while: below lower thresholds, so that a load at a threshold does not switch overcommit to and fro.
//
// Limits: pods that run keep their requests. Nodes count one by one: nothing is said of a zone or of a namespace.
package guard

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Limits are what an operator allows.
type Limits struct {
	FitPercent       int           // of the nodes, that have to be fit
	UsePercent       int           // of a node's CPUs, at most, by the tiers above background
	LongWaitsPercent int           // of the waits of its standard tier, at most
	RecoverAfter     time.Duration // for which nodes have to be calm
}

// calmer is how many per cent of its CPUs a calm node uses less than it may.
const calmer = 10

// Load is what a node's tiers did between two reports.
type Load struct {
	Use       float64 // of its CPUs, by the tiers above background: 0 to 1
	LongWaits float64 // of the waits of its standard tier: 0 to 1
}

// Node is one that the guard looks at.
type Node struct {
	Name     string
	Enforced bool
	Load     *Load // nil: not measured yet
}

// State is what the guard keeps from one look to the next. The zero State is of a policy that is new.
type State struct {
	Lowering  bool      // new pods' requests are lowered
	CalmSince time.Time // zero: the nodes are not calm, or requests are lowered
}

// Why new pods keep their requests.
const (
	ReasonNoNodes      = "NoNodes"
	ReasonNotEnforced  = "NotEnforced"
	ReasonUseTooHigh   = "UseTooHigh"
	ReasonWaitsTooLong = "WaitsTooLong"
	ReasonNotMeasured  = "NotMeasured"
	ReasonRecovering   = "Recovering"
	ReasonCalm         = "Calm" // they do not
)

// faults are why nodes are not fit, in the order in which they are looked for.
var faults = []struct{ reason, words string }{
	{ReasonNotEnforced, "tiers are not enforced on"},
	{ReasonUseTooHigh, "tiers above background use too much of"},
	{ReasonWaitsTooLong, "standard waits too long on"},
}

// Verdict is what the guard has found.
type Verdict struct {
	State
	Nodes, Fit int
	Reason     string
	Message    string
}

// Next is the state that follows from another one and the nodes as they are.
func (l Limits) Next(was State, nodes []Node, now time.Time) Verdict {
	v := Verdict{Nodes: len(nodes)}
	names := map[string][]string{}
	calm, unfit := 0, 0
	for _, n := range nodes {
		fault := l.fault(n)
		switch {
		case fault != "":
			unfit++
			names[fault] = append(names[fault], n.Name)
		case n.Load == nil: // neither fit nor unfit: nothing follows from it, but that nodes are not calm
			names[ReasonNotMeasured] = append(names[ReasonNotMeasured], n.Name)
		default:
			v.Fit++
			if l.isCalm(*n.Load) {
				calm++
			}
		}
	}
	switch {
	case len(nodes) == 0:
		v.Reason, v.Message = ReasonNoNodes, "the policy selects no node"
	case !l.enough(len(nodes)-unfit, len(nodes)):
		v.Reason = worst(names)
		v.Message = v.count() + "; " + list(names)
	case was.Lowering:
		v.Lowering, v.Reason, v.Message = true, ReasonCalm, v.count()
	case !l.enough(v.Fit, len(nodes)):
		v.Reason, v.Message = ReasonNotMeasured, fmt.Sprintf("%s; not measured yet: %s", v.count(), some(names[ReasonNotMeasured]))
	case !l.enough(calm, len(nodes)):
		v.Reason, v.Message = ReasonRecovering, fmt.Sprintf("%s; %d are calm", v.count(), calm)
	default:
		l.recover(&v, was, now)
	}
	return v
}

// recover lowers again once nodes have been calm for long enough.
func (l Limits) recover(v *Verdict, was State, now time.Time) {
	since := was.CalmSince
	if since.IsZero() || since.After(now) { // another clock's
		since = now
	}
	if now.Sub(since) >= l.RecoverAfter {
		v.Lowering, v.Reason, v.Message = true, ReasonCalm, v.count()
		return
	}
	v.CalmSince, v.Reason = since, ReasonRecovering
	v.Message = fmt.Sprintf("%s; they are calm, and have to be until %s", v.count(), since.Add(l.RecoverAfter).UTC().Format(time.RFC3339))
}

func (l Limits) enough(some, all int) bool { return some*100 >= l.FitPercent*all }

// fault says why a node is not fit; "": nothing speaks against it.
func (l Limits) fault(n Node) string {
	switch {
	case !n.Enforced:
		return ReasonNotEnforced
	case n.Load == nil:
		return ""
	case n.Load.Use*100 > float64(l.UsePercent):
		return ReasonUseTooHigh
	case n.Load.LongWaits*100 > float64(l.LongWaitsPercent):
		return ReasonWaitsTooLong
	}
	return ""
}

func (l Limits) isCalm(load Load) bool {
	return load.Use*100 <= max(float64(l.UsePercent-calmer), float64(l.UsePercent)/2) && load.LongWaits*200 <= float64(l.LongWaitsPercent)
}

func (v Verdict) count() string { return fmt.Sprintf("%d of %d nodes are fit", v.Fit, v.Nodes) }

// worst is the fault that most nodes have.
func worst(names map[string][]string) string {
	most := faults[0].reason
	for _, f := range faults {
		if len(names[f.reason]) > len(names[most]) {
			most = f.reason
		}
	}
	return most
}

func list(names map[string][]string) string {
	var parts []string
	for _, f := range faults {
		if len(names[f.reason]) > 0 {
			parts = append(parts, f.words+" "+some(names[f.reason]))
		}
	}
	return strings.Join(parts, "; ")
}

// named is how many nodes a message names.
const named = 5

func some(names []string) string {
	names = slices.Sorted(slices.Values(names))
	if len(names) <= named {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:named], ", "), len(names)-named)
}
