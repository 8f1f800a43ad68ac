// Package model is the reference model of PathFence: it decides as ../algorithm.md says, one event after the other, and
// is what the test vectors are made from. It is written to be read beside the text, not to be fast.
//
// config.go: what an operator sets. keys.go: from a key to a class. fence.go: the events. pump.go: who gets a worker, and
// what is shed. lend.go: reserves, and what of them is lent. window.go: what is measured. control.go: limits. fit.go: the
// arithmetic of the knee. vector.go: scenarios in, decisions out.
package model
