// Package kubernetes holds the objects that a cluster with Temper has.
package kubernetes

import "embed"

// DefaultPolicy is the TierPolicy that applies where no other does.
//
//go:embed tierpolicy.yaml
var DefaultPolicy []byte

// PriorityClasses are the classes that the default policy knows, but for Kubernetes' own.
//
//go:embed priorityclasses.yaml
var PriorityClasses []byte

// Objects are the files of all of them.
//
//go:embed *.yaml crds/temper.dev_*.yaml
var Objects embed.FS
