package run

import (
	"context"
	"maps"
	"path"
	"strings"

	"temper.dev/temper/lab/assets"
	"temper.dev/temper/lab/plan"
	"temper.dev/temper/lab/userland"
)

// limitedService is one that 'lab limits' holds to a limit.
type limitedService struct {
	Name, Summary string

	files func(context.Context, *Lab, func(string)) (map[string]string, error) // what it adds to the guest
}

// LimitedServices are all of them.
var LimitedServices = []limitedService{
	{plan.GoService, "a service written in Go, whose collector comes in bursts on all CPUs", goServiceFiles},
	{plan.JVM, "a service on the JVM, OpenJDK 17 from Debian, with two threads for each CPU that it sees", jvmFiles},
	{plan.MariaDB, "MariaDB from Debian, in memory, and sysbench's oltp_read_write", mariadbFiles},
	{plan.Postgres, "PostgreSQL from Debian, in memory, and pgbench's simple updates", postgresFiles},
}

func goServiceFiles(_ context.Context, l *Lab, _ func(string)) (map[string]string, error) {
	program, err := l.assets.File(assets.GoService)
	return map[string]string{"bin/goservice": program}, err
}

// postgresFiles are the programs with their libraries, and what initdb and the server read.
func postgresFiles(ctx context.Context, l *Lab, notify func(string)) (map[string]string, error) {
	programs := strings.TrimPrefix(plan.PostgresPrograms, "/")
	return userland.Files(ctx, l.cache, notify, "postgresql-15",
		[]string{programs + "/postgres", programs + "/initdb", programs + "/pgbench"},
		[]string{"usr/share/postgresql/15", "usr/lib/postgresql/15/lib"})
}

// jvmFiles are the parts of the runtime that a program without a window needs, the service's classes, and the Go
// service, whose load it takes.
func jvmFiles(ctx context.Context, l *Lab, notify func(string)) (map[string]string, error) {
	home := strings.TrimPrefix(plan.JavaHome, "/")
	within := func(places ...string) (list []string) {
		for _, place := range places {
			list = append(list, home+"/"+place)
		}
		return list
	}
	files, err := userland.Files(ctx, l.cache, notify, "openjdk-17-jre-headless", within("bin/java", "lib/server/libjvm.so", "lib/libjava.so",
		"lib/libextnet.so", "lib/libjimage.so", "lib/libnet.so", "lib/libnio.so", "lib/libzip.so"), within("lib/modules", "lib/server/classes.jsa", "lib/jvm.cfg", "conf"))
	if err != nil {
		return nil, err
	}
	load, err := goServiceFiles(ctx, l, notify)
	if err != nil {
		return nil, err
	}
	maps.Copy(files, load)
	for _, class := range assets.JVMClasses {
		if files[strings.TrimPrefix(plan.JVMClasses, "/")+"/"+path.Base(class)], err = l.assets.File(class); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// mariadbFiles are the server, what makes its tables, and the load.
func mariadbFiles(ctx context.Context, l *Lab, notify func(string)) (map[string]string, error) {
	files, err := userland.Files(ctx, l.cache, notify, "mariadb-server-core",
		[]string{strings.TrimPrefix(plan.MariaDBProgram, "/")}, append([]string{"usr/share/mysql/english", "usr/share/mysql/charsets"}, plan.MariaDBTables...))
	if err != nil {
		return nil, err
	}
	load, err := userland.Files(ctx, l.cache, notify, "sysbench", []string{"usr/bin/sysbench"}, []string{"usr/share/sysbench"})
	maps.Copy(files, load)
	return files, err
}
