// Package fencetop shows what the fences of services do (pathfence/spec/state.md).
package fencetop

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	pathfence "temper.dev/temper/pathfence/go"
)

// State is what a fence says of itself, in whichever language.
type State = pathfence.State

// Class is one of its classes of paths.
type Class = pathfence.ClassState

// patience is how long a service may take to answer.
const patience = 2 * time.Second

// Ask gives what a target says of its fence.
type Ask func(ctx context.Context, target string) ([]byte, error)

// Read asks a target: the path of a Unix socket (it begins with / or .), or the http(s) address of the endpoint.
func Read(ctx context.Context, target string) (*State, error) { return read(ctx, target, Local) }

func read(ctx context.Context, target string, ask Ask) (*State, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	text, err := ask(ctx, target)
	if err != nil {
		return nil, err
	}
	s := &State{}
	if err := json.Unmarshal(text, s); err != nil {
		return nil, fmt.Errorf("what it says is not the state of a fence: %w", err)
	}
	if s.Workers == 0 {
		return nil, fmt.Errorf("what it says is not the state of a fence: it has no workers")
	}
	return s, nil
}

// mostText is more than a fence has to say.
const mostText = 4 << 20

// Local asks a target that this machine reaches by itself.
func Local(ctx context.Context, target string) ([]byte, error) {
	if isSocket(target) {
		conn, err := (&net.Dialer{}).DialContext(ctx, "unix", target)
		if err != nil {
			return nil, err
		}
		defer conn.Close()
		deadline, _ := ctx.Deadline()
		if err := conn.SetDeadline(deadline); err != nil {
			return nil, err
		}
		return io.ReadAll(io.LimitReader(conn, mostText))
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s", target, response.Status)
	}
	return io.ReadAll(io.LimitReader(response.Body, mostText))
}

// isSocket says whether a target is the path of a socket.
func isSocket(target string) bool {
	return strings.HasPrefix(target, "/") || strings.HasPrefix(target, ".")
}

// Check says what is wrong with a target, before anything is asked.
func Check(target string) error {
	if isSocket(target) {
		return nil
	}
	u, err := url.Parse(target)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return fmt.Errorf("%q is neither the path of a socket, as /run/orders/pathfence.sock, nor an address, as http://localhost:8080/actuator/pathfence", target)
	}
	return nil
}
