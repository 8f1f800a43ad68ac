// Package core is the algorithm of PathFence, without clock, lock or goroutine: it decides as ../../spec/algorithm.md says, one
// event after the other. The test vectors, which implementations in other languages replay, are made from it.
//
// config.go: what an operator sets. keys.go: from a key to a class. fence.go: the events. pump.go: who gets a worker, and
// what is shed. lend.go: reserves, and what of them is lent. window.go: what is measured. control.go: limits. fit.go: the
// arithmetic of the knee. vector.go: scenarios in, decisions out.
package core
