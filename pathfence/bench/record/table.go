package record

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// Line is what one path got from one arm, over all repetitions that count.
type Line struct {
	Disturbance, Path, Arm string

	Offered, Goodput Spread // per second
	P50, P99         Spread // ms
	Shed, Timeouts   Spread // requests
	Valid, All       int    // repetitions
}

// Lines are the record's, in the order of their disturbances.
func (r Record) Lines() (list []Line) {
	for _, d := range r.names(func(row Row) string { return row.Disturbance }) {
		for _, path := range []string{Innocent, Slowed} {
			for _, arm := range r.Arms(d) {
				if rows := r.of(arm, d, path); len(rows) > 0 {
					list = append(list, newLine(rows))
				}
			}
		}
	}
	return list
}

// Arms are those that were measured under a disturbance, in the order in which they first ran.
func (r Record) Arms(disturbance string) []string {
	return slices.DeleteFunc(r.names(func(row Row) string { return row.Arm }), func(arm string) bool { return !r.has(arm, disturbance) })
}

func (r Record) of(arm, disturbance, path string) (rows []Row) {
	for _, row := range r.Rows {
		if row.Arm == arm && row.Disturbance == disturbance && row.Path == path {
			rows = append(rows, row)
		}
	}
	return rows
}

func newLine(rows []Row) Line {
	valid := slices.DeleteFunc(slices.Clone(rows), func(r Row) bool { return !r.Valid })
	column := func(of func(Row) float64) Spread {
		values := make([]float64, len(valid))
		for i, row := range valid {
			values[i] = of(row)
		}
		return spread(values)
	}
	return Line{
		Disturbance: rows[0].Disturbance, Path: rows[0].Path, Arm: rows[0].Arm,
		Offered: column(func(r Row) float64 { return r.Offered }), Goodput: column(func(r Row) float64 { return r.Goodput }),
		P50: column(func(r Row) float64 { return r.P50 }), P99: column(func(r Row) float64 { return r.P99 }),
		Shed: column(func(r Row) float64 { return float64(r.Shed) }), Timeouts: column(func(r Row) float64 { return float64(r.Timeouts) }),
		Valid: len(valid), All: len(rows),
	}
}

// WriteTable writes what each path got from each arm: medians over the valid rows, with the range of goodput and p99.
func (r Record) WriteTable(w io.Writer) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	defer table.Flush()
	fmt.Fprintln(table, "DISTURBANCE\tPATH\tARM\tOFFERED/S\tGOODPUT/S\tP50 MS\tP99 MS\tSHED\tTIMEOUTS\tVALID")
	for _, l := range r.Lines() {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%v\t%s\t%v\t%s\t%s\t%d of %d\n", l.Disturbance, PathName(l.Path), l.Arm,
			l.Offered.Middle(), l.Goodput, l.P50.Middle(), l.P99, l.Shed.Middle(), l.Timeouts.Middle(), l.Valid, l.All)
	}
}
