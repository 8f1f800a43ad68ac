package ladder

import (
	"context"

	"temper.dev/temper/lab/plan"
)

// jvm is a service on the JVM whose pool has two threads for each CPU that it sees (the guest folder's jvmservice). It
// speaks as the Go service does.
type jvm struct{}

// jvmWarmUp is for its compiler, in guest seconds of full load without a limit. After 6 it was still at work: what was
// then taken for the capacity was half of what followed.
const jvmWarmUp = 20

func (jvm) socket(l *ladder) string { return l.Dir + "/jvmservice" }

func (s jvm) start(ctx context.Context, l *ladder) error {
	// Sizes that do not change: where the collector sets that of the young generation by how long it pauses, which a limit
	// makes longer, a service under a limit becomes three times as slow, whoever keeps the limit (decision 32).
	err := l.startSpeaker(ctx, plan.JavaHome+"/bin/java", "-Xms128m", "-Xmx128m", "-Xmn32m", "-XX:+UseParallelGC", "-XX:-UseAdaptiveSizePolicy",
		"-cp", plan.JVMClasses, "Service", s.socket(l))
	if err != nil {
		return err
	}
	_, err = s.ask(ctx, l, asked{clients: 2 * l.CPUs, seconds: jvmWarmUp, seed: 1})
	return err
}

func (s jvm) ask(ctx context.Context, l *ladder, a asked) (answers, error) {
	return l.askBySocket(ctx, s.socket(l), a)
}
