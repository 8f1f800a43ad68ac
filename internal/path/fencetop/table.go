package fencetop

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"temper.dev/temper/internal/base/host"
)

// Write writes looks as tables: rates where there was a look before, else counts since the services' start. What services say is
// theirs: it cannot write lines, or move a cursor.
func Write(w io.Writer, looks []Look) {
	for i, l := range looks {
		if i > 0 {
			fmt.Fprintln(w)
		}
		if l.State == nil {
			fmt.Fprintf(w, "%s · cannot be asked: %s\n", l.Target, host.Printable(l.Error))
			continue
		}
		s := l.State
		mode := "on"
		if s.Off {
			mode = "OFF: the plain pool"
		}
		fmt.Fprintf(w, "%s · %s · %d of %d workers taken · %d requests wait\n", l.Target, mode, s.InFlight, s.Workers, s.Waiting)
		if s.WatchError != nil {
			fmt.Fprintf(w, "  its configuration is not in force: %s\n", host.Printable(*s.WatchError))
		}
		writeClasses(w, s.Classes, l.Changes)
	}
}

func writeClasses(w io.Writer, classes []Class, changes []Change) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	defer table.Flush()
	per := ""
	if changes != nil {
		per = "/S"
	}
	fmt.Fprintf(table, "CLASS\tLIMIT\tRESERVE\tIN FLIGHT\tQUEUED\tLENT\tKNEE\tHOLD\tGRANTED%[1]s\tSHED%[1]s\tMISSED%[1]s\tFAILED%[1]s\tLIMIT BY\n", per)
	for i, c := range classes {
		counts := []string{fmt.Sprint(c.Granted), fmt.Sprint(c.Shed), fmt.Sprint(c.Missed), fmt.Sprint(c.Failed)}
		if changes != nil {
			d := changes[i]
			for j, rate := range []float64{d.Granted, d.Shed, d.Missed, d.Failed} {
				counts[j] = fmt.Sprintf("%.1f", rate)
			}
		}
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", host.Printable(named(c)), c.Limit, c.Reserve, c.InFlight, c.Queued, c.Lent,
			orDash(c.Knee != 0, fmt.Sprint(c.Knee)), orDash(c.Hold != 0, hold(c.Hold)), counts[0], counts[1], counts[2], counts[3], orDash(c.Reason != "", host.Printable(c.Reason)))
	}
}

// named is a class's name, and of one that nobody has named a path that is known to be of it.
func named(c Class) string {
	switch {
	case !strings.HasPrefix(c.Name, "~") || len(c.Keys) == 0 || len(c.Keys) == 1 && c.Name == "~key:"+c.Keys[0]:
		return c.Name
	case len(c.Keys) == 1:
		return c.Name + " " + c.Keys[0]
	}
	return fmt.Sprintf("%s %s, %d more", c.Name, c.Keys[0], len(c.Keys)-1)
}

// hold is a time to the hundredth of its unit.
func hold(ns int64) string {
	d := time.Duration(ns)
	for unit := time.Microsecond; unit <= time.Second; unit *= 1000 {
		if d < 1000*unit {
			return d.Round(unit / 100).String()
		}
	}
	return d.Round(time.Second).String()
}

func orDash(known bool, text string) string {
	if known {
		return text
	}
	return "-"
}
