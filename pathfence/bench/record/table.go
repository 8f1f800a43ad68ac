package record

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// WriteTable writes what each path got from each arm: medians over the valid rows, with the range of goodput and p99.
func (r Record) WriteTable(w io.Writer) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	defer table.Flush()
	fmt.Fprintln(table, "DISTURBANCE\tPATH\tARM\tOFFERED/S\tGOODPUT/S\tP50 MS\tP99 MS\tSHED\tTIMEOUTS\tVALID")
	for _, d := range r.names(func(row Row) string { return row.Disturbance }) {
		for _, path := range []string{Innocent, Slowed} {
			for _, arm := range r.names(func(row Row) string { return row.Arm }) {
				if rows := r.of(arm, d, path); len(rows) > 0 {
					writeRow(table, rows)
				}
			}
		}
	}
}

func (r Record) of(arm, disturbance, path string) (rows []Row) {
	for _, row := range r.Rows {
		if row.Arm == arm && row.Disturbance == disturbance && row.Path == path {
			rows = append(rows, row)
		}
	}
	return rows
}

func writeRow(w io.Writer, rows []Row) {
	valid := slices.DeleteFunc(slices.Clone(rows), func(r Row) bool { return !r.Valid })
	column := func(of func(Row) float64) Spread {
		values := make([]float64, len(valid))
		for i, row := range valid {
			values[i] = of(row)
		}
		return spread(values)
	}
	middle := func(of func(Row) float64) string {
		s := column(of)
		s.Low, s.High = s.Median, s.Median
		return s.String()
	}
	fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%v\t%s\t%v\t%s\t%s\t%d of %d\n", rows[0].Disturbance, rows[0].Path, rows[0].Arm,
		middle(func(r Row) float64 { return r.Offered }), column(func(r Row) float64 { return r.Goodput }),
		middle(func(r Row) float64 { return r.P50 }), column(func(r Row) float64 { return r.P99 }),
		middle(func(r Row) float64 { return float64(r.Shed) }), middle(func(r Row) float64 { return float64(r.Timeouts) }), len(valid), len(rows))
}
