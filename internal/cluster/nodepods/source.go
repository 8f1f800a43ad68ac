// Package nodepods tells the agent of one node of a cluster which pods run there, in which cgroups, and in which tiers.
package nodepods

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"k8s.io/client-go/rest"

	"temper.dev/temper/internal/base/host"
	"temper.dev/temper/internal/node/agent"
)

// unknownAfter is how long a pod's cgroup may be there before it is told that no pod is known for it: the kubelet makes
// it before the API server says that the pod is on this node, or after it has said that the pod is gone.
const unknownAfter = 30 * time.Second

// firstWord is for how long an agent that starts waits for the API server before it goes by what an earlier one knew: safe
// mode may have been asked for meanwhile. An attached scheduler waits longer for a new agent (heartbeatTimeout).
const firstWord = 3 * time.Second

// Source adds a cluster's pods to what the node's own configuration asks for.
type Source struct {
	agent.Source // the node's own
	ctx          context.Context
	root         host.Root
	log          *slog.Logger
	reader       reader
	tree         tree
	known        *Known               // nil: nobody has said anything yet
	fresh        bool                 // known is the API server's word to this agent
	unknown      map[string]time.Time // since when a pod's cgroup is there that no pod is known for
	absentSince  map[string]time.Time // since when a pod runs that has no process in a cgroup
	absent       []string             // pods of which that has been so for long
	runtime      func() int           // the container runtime's process; 0: not known
	services     []service
	unasked      bool   // the kernel did not say who listens, which is told once
	saved        *Known // as last written
}

// New watches the cluster until ctx ends, as the node of this name. It waits for a moment for what the API server says.
func New(ctx context.Context, root host.Root, own agent.Source, config *rest.Config, node string, log *slog.Logger) (*Source, error) {
	cluster, err := watch(ctx, config, node)
	if err != nil {
		return nil, err
	}
	s := &Source{Source: own, ctx: ctx, root: root, log: log, unknown: map[string]time.Time{}, absentSince: map[string]time.Time{},
		reader: reader{cluster: cluster, node: node}, tree: tree{root: root}}
	if s.known, err = recall(root); err != nil {
		log.Warn("what an earlier agent knew of the cluster is lost", "error", err)
	}
	wait, stop := context.WithTimeout(ctx, firstWord)
	defer stop()
	if !cluster.cache.WaitForCacheSync(wait) && ctx.Err() == nil {
		log.Warn("the API server does not answer yet", "known from before", s.known != nil)
	}
	return s, nil
}

// RuntimeIs has the source ask for the process of the node's container runtime. Before the first Refresh.
func (s *Source) RuntimeIs(pid func() int) { s.runtime = pid }

// Changed receives after a change in the cluster.
func (s *Source) Changed() <-chan struct{} { return s.reader.changed }

// Refresh looks for kubelets' cgroups, and keeps what is known for the next agent.
func (s *Source) Refresh() {
	s.Source.Refresh()
	s.tree.find()
	s.findServices()
	if s.fresh {
		if running, err := s.reader.running(s.ctx); err == nil { // Look tells of an error
			s.lookForAbsent(running, time.Now())
		}
	}
	s.save()
}

// save keeps what the API server has said to this agent.
func (s *Source) save() {
	if !s.fresh || s.known == s.saved {
		return
	}
	if err := host.WriteJSON(s.root.Run(knownFile), s.known); err != nil {
		s.log.Error("what is known of the cluster cannot be kept for the next agent", "error", err)
		return
	}
	s.saved = s.known
}

// Look adds the pods that have a cgroup now.
func (s *Source) Look() agent.Wanted {
	w := s.Source.Look()
	s.ask(&w)
	if len(s.tree.tops) == 0 {
		s.tree.find()
	}
	classes := s.tree.classes()
	w.Parents = append(append(w.Parents, "/"), classes...) // the root is where a kubelet's tree usually appears
	if s.known == nil {
		if w.Off == nil {
			w.Off = &agent.Off{Reason: agent.NotKnown, Message: "the API server has not said yet which policy and pods this node has"}
		}
		return w
	}
	w.Config, w.Policy, w.CriticalMilliCPU = s.known.over(w.Config), s.known.Policy, s.known.critical
	if w.Off == nil { // the node's own word comes first
		w.Off = s.known.Off
	}
	w.Problems = append(w.Problems, s.known.Problems...)
	s.add(&w, s.tree.pods(classes))
	s.addStrays(&w)
	s.tellOfAbsent(&w)
	s.addServices(&w)
	return w
}

// ask brings what is known up to date.
func (s *Source) ask(w *agent.Wanted) {
	known, err := s.reader.read(s.ctx)
	switch {
	case err != nil:
		w.Problems = append(w.Problems, fmt.Sprintf("what the API server has said cannot be read: %v", err))
	case known != nil:
		s.known, s.fresh = known, true
		if s.saved == nil || !s.saved.sameNode(known) { // what pods there are can wait for the next Refresh
			s.save()
		}
	}
	w.Problems = append(w.Problems, s.reader.silent()...)
}

// add adds the members: the cgroups of known pods among those that are there. One of an unknown pod has its ancestors'
// tier, which is standard.
func (s *Source) add(w *agent.Wanted, there map[string][]found) {
	now := time.Now()
	for _, id := range slices.Sorted(maps.Keys(there)) {
		pod, known := s.known.Pods[id]
		if !known {
			if _, before := s.unknown[id]; !before {
				s.unknown[id] = now
			}
			continue
		}
		delete(s.unknown, id)
		for _, cg := range there[id] {
			w.Add(agent.Member{Cgroup: cg.cgroup, ID: cg.id, Tier: pod.Tier, Limits: pod.Limits, Source: "pod", Pod: pod.Name, Reason: pod.Reason})
		}
	}
	maps.DeleteFunc(s.unknown, func(id string, _ time.Time) bool { return there[id] == nil })
	var long []found
	for id, since := range s.unknown {
		if now.Sub(since) > unknownAfter {
			long = append(long, there[id]...)
		}
	}
	if len(long) > 0 {
		w.Problems = append(w.Problems, fmt.Sprintf("%d cgroups look like pods', and the API server knows no such pods: %s", len(long),
			slices.MinFunc(long, func(a, b found) int { return cmp.Compare(a.cgroup, b.cgroup) }).cgroup))
	}
}
