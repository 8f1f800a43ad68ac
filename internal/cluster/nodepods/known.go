package nodepods

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"

	"temper.dev/temper/internal/base/host"
	"temper.dev/temper/internal/base/tier"
	"temper.dev/temper/internal/cluster/policy"
	"temper.dev/temper/internal/node/agent"
	"temper.dev/temper/internal/node/config"
)

// knownFile is what an agent leaves to the next, below /run/temper: the API server may be away when that starts.
const knownFile = "cluster.json"

// Known is what the API server says of a node, as far as tiers go.
type Known struct {
	Policy   string         `json:"policy"` // that applies to the node; "": none
	Loans    string         `json:"loans"`
	SMT      string         `json:"smt"`
	Limits   string         `json:"limits"`
	Percent  int64          `json:"reservation_percent"` // of what critical pods request
	Off      *agent.Off     `json:"off"`
	Pods     map[string]Pod `json:"pods"` // by what the kubelet calls them: UID, or a static pod's hash
	Problems []string       `json:"problems"`

	critical int64 // what critical pods request, in thousandths of a CPU: sum
}

// Pod is one of the node's pods.
type Pod struct {
	Name   string    `json:"name"` // namespace/name
	Tier   tier.Tier `json:"tier"`
	Reason string    `json:"reason"` // for the tier
	Limits string    `json:"limits"` // mode of its own; "": the node's
	CPU    int64     `json:"cpu"`    // requested, in thousandths of a CPU
}

// over is the node's own configuration with what the cluster's policy says in its place.
func (k *Known) over(node *config.Config) *config.Config {
	if k.Policy == "" {
		return node
	}
	both := *node
	both.Loans, both.SMT, both.Limits, both.Reservation = k.Loans, k.SMT, k.Limits, new(k.reservation())
	return &both
}

// sum adds up what the critical pods request. It is done when pods are read, and not at each look.
func (k *Known) sum() {
	k.critical = 0
	for _, pod := range k.Pods {
		if pod.Tier == tier.Critical {
			k.critical = min(k.critical, math.MaxInt64-pod.CPU) + pod.CPU // whoever makes pods may ask for anything
		}
	}
}

// reservation is up to how many thousandths of a CPU critical comes first: up to all that scx_temper can schedule.
func (k *Known) reservation() int64 {
	const most = config.MostCPUs * 1000
	return min(min(k.critical, 100*most)*k.Percent/100, most) // no product is too large
}

// sameNode tells whether nothing but pods has changed.
func (k *Known) sameNode(other *Known) bool {
	sameOff := k.Off == other.Off || k.Off != nil && other.Off != nil && *k.Off == *other.Off
	return sameOff && k.Policy == other.Policy && k.Loans == other.Loans && k.SMT == other.SMT && k.Limits == other.Limits &&
		k.Percent == other.Percent
}

// recall reads what an earlier agent knew since the node was booted; nil if there was none.
func recall(root host.Root) (*Known, error) {
	data, err := os.ReadFile(root.Run(knownFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	k := &Known{}
	if err := json.Unmarshal(data, k); err != nil {
		return nil, fmt.Errorf("%s: %w", root.Run(knownFile), err)
	}
	if k.Pods == nil {
		return nil, fmt.Errorf("%s says nothing of pods", root.Run(knownFile))
	}
	k.Percent = cmp.Or(k.Percent, policy.DefaultReservation) // an agent that did not follow it has not kept it
	k.sum()
	return k, nil
}
