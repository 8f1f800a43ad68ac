package ladder

import (
	"context"

	"temper.dev/temper/lab/plan"
)

// jvm is a service on the JVM whose pool has two threads for each CPU that it sees (the guest folder's jvmservice). It
// speaks as the Go service does.
type jvm struct{}

// jvmWarmUp is for its compiler, in guest seconds of full load without a limit.
const jvmWarmUp = 6

func (jvm) socket(l *ladder) string { return l.Dir + "/jvmservice" }

func (s jvm) start(ctx context.Context, l *ladder) error {
	if err := l.startSpeaker(ctx, plan.JavaHome+"/bin/java", "-Xmx128m", "-XX:+UseG1GC", "-cp", plan.JVMClasses, "Service", s.socket(l)); err != nil {
		return err
	}
	_, err := s.ask(ctx, l, asked{clients: 2 * l.CPUs, seconds: jvmWarmUp, seed: 1})
	return err
}

func (s jvm) ask(ctx context.Context, l *ladder, a asked) (answers, error) {
	return l.askBySocket(ctx, s.socket(l), a)
}
