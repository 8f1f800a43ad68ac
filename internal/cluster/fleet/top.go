// Looks at the nodes of a cluster for 'kubectl temper top'.
//
// Problem: a TemperNode has its figures once a minute, which is right for an API server and too seldom to watch.
//
// Method: where an agent serves metrics, it is asked for them through the API server; rates and percentiles are of the time
// between two looks. Otherwise the node has the figures of its TemperNode, and says why.
//
// Limits: metrics name 500 pods a node. A TemperNode says nothing of a single pod's CPU time.

package fleet

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"temper.dev/temper/api/v1alpha1"
	"temper.dev/temper/internal/cluster/podproxy"
	"temper.dev/temper/internal/node/nodetop"
)

const (
	patience   = 5 * time.Second // for an answer of one agent
	atATime    = 16              // agents that are asked
	metricPort = "metrics"       // as the chart names it
)

// TopSource is a cluster.
type TopSource struct {
	Cluster client.Reader
	Clients kubernetes.Interface
	Nodes   []string // to look at; all if there are none
}

// Round looks at all nodes at a time.
func (s *TopSource) Round(ctx context.Context) *nodetop.Round {
	r := &nodetop.Round{Time: time.Now(), Nodes: []nodetop.Look{}}
	nodes, _, err := All(ctx, s.Cluster, s.Nodes, r.Time)
	if err != nil {
		r.Error = err.Error()
		return r
	}
	agents, err := s.agents(ctx)
	r.Nodes = make([]nodetop.Look, len(nodes))
	places := make(chan struct{}, atATime)
	var all sync.WaitGroup
	for i, n := range nodes {
		all.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			r.Nodes[i] = s.look(ctx, n, agents[n.Name], err)
		})
	}
	all.Wait()
	return r
}

// agents are the pods of agents, by node. One that is about to go does not count.
func (s *TopSource) agents(ctx context.Context) (map[string]corev1.Pod, error) {
	var list corev1.PodList
	if err := s.Cluster.List(ctx, &list, Agents); err != nil {
		return nil, err
	}
	agents := map[string]corev1.Pod{}
	for _, pod := range list.Items {
		if pod.DeletionTimestamp == nil && pod.Status.Phase == corev1.PodRunning {
			agents[pod.Spec.NodeName] = pod
		}
	}
	return agents, nil
}

// look asks a node's agent; agents is why no agent is known.
func (s *TopSource) look(ctx context.Context, n Node, agent corev1.Pod, agents error) nodetop.Look {
	l := nodetop.Look{Node: n.Name, Rung: n.Rung, Enforced: n.Enforced()}
	err := agents
	if err == nil {
		err = ask(ctx, &l, s.Clients, agent)
	}
	if err != nil {
		l.WhyNot = err.Error()
		if agent.Name == "" {
			l.WhyNot = cmp.Or(n.Agent, l.WhyNot)
		}
		fill(&l, n)
	}
	return l
}

// ask fills in what a node's agent says.
func ask(ctx context.Context, l *nodetop.Look, clients kubernetes.Interface, agent corev1.Pod) error {
	if agent.Name == "" {
		return fmt.Errorf("no agent's pod runs there")
	}
	port := portOf(agent)
	if port == "" {
		return fmt.Errorf("its agent serves no metrics (metrics.address of the chart)")
	}
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	text, err := podproxy.Get(ctx, clients, podproxy.Pod{Namespace: agent.Namespace, Name: agent.Name, Port: port}, "metrics")
	if err != nil {
		return fmt.Errorf("its agent cannot be asked: %w", err)
	}
	l.Time = time.Now()
	if err := l.FromMetrics(text); err != nil {
		return err
	}
	l.Live = true
	return nil
}

func portOf(agent corev1.Pod) string {
	for _, c := range agent.Spec.Containers {
		for _, p := range c.Ports {
			if p.Name == metricPort {
				return strconv.Itoa(int(p.ContainerPort))
			}
		}
	}
	return ""
}

// fill fills in what the node's TemperNode says.
func fill(l *nodetop.Look, n Node) {
	l.Time, l.Pods, l.Tiers = n.Reported.Time, []nodetop.Pod{}, []nodetop.Tier{}
	for _, t := range n.Tiers {
		l.Tiers = append(l.Tiers, tierOf(t))
		for _, name := range t.Pods {
			l.Pods = append(l.Pods, nodetop.Pod{Name: name, Tier: string(t.Tier)})
		}
	}
	if g := n.Gap; g != nil {
		l.Overrun = reported(g.OverrunP50Microseconds, g.OverrunP99Microseconds)
		l.LoanBack = reported(g.LoanBackP50Microseconds, g.LoanBackP99Microseconds)
	}
}

func tierOf(t v1alpha1.TierStatus) nodetop.Tier {
	told := nodetop.Tier{Tier: string(t.Tier), Pods: len(t.Pods)}
	if seconds, err := strconv.ParseFloat(strings.TrimSpace(t.CPUSeconds), 64); err == nil {
		told.CPU, told.Wait = &nodetop.Count{Total: seconds}, reported(t.WaitP50Microseconds, t.WaitP99Microseconds)
	}
	return told
}

func reported(p50, p99 int64) *nodetop.Times {
	return &nodetop.Times{P50US: uint64(p50), P99US: uint64(p99)}
}
