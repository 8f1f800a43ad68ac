package agent

import "context"

// SyncNow has the agent sync the node now, and returns once what follows from that is in force. It is for whoever keeps
// something from starting meanwhile, and so ends with ctx at the latest, false then: the agent may have other things to do.
func (a *Agent) SyncNow(ctx context.Context) bool {
	done := make(chan struct{})
	select {
	case a.syncRequests <- done:
	case <-ctx.Done():
		return false
	}
	select {
	case <-done:
		return true
	case <-ctx.Done():
		return false
	}
}
