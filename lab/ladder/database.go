package ladder

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"syscall"

	"temper.dev/temper/lab/plan"
)

// serviceUser is whom databases run as: they refuse root.
var serviceUser = &syscall.Credential{Uid: plan.ServiceUser, Gid: plan.ServiceUser}

// startDatabase starts a server in the critical cgroup, on the application CPUs.
func (l *ladder) startDatabase(ctx context.Context, program string, args ...any) error {
	server, err := l.serviceCommand(ctx, program, args...)
	if err != nil {
		return err
	}
	server.SysProcAttr.Credential = serviceUser
	server.Stdout = l.Log
	return l.startIn("critical", server)
}

// runDatabaseTool runs one of a database's programs to its end, and returns what it printed. What it read may be nil.
func (l *ladder) runDatabaseTool(ctx context.Context, input io.Reader, program string, args ...any) (string, error) {
	cmd, err := l.command(ctx, program, args...)
	if err != nil {
		return "", err
	}
	var errs bytes.Buffer
	cmd.Stdin, cmd.Stderr = input, &errs
	cmd.Env = append(cmd.Env, "TZ=GMT", "HOME=/tmp")
	cmd.SysProcAttr.Credential = serviceUser
	cmd.Dir = "/tmp"
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s%s", program, err, bytes.TrimSpace(out), bytes.TrimSpace(errs.Bytes()))
	}
	return string(out), nil
}
