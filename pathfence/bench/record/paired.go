package record

import (
	"fmt"
	"math"
	"slices"
)

// Spread is the median of what repetitions gave, with the least and the largest. Of five repetitions these two have the
// true median between them in 94 of 100 cases, of six in 97, whatever the distribution.
type Spread struct {
	Median, Low, High float64
	N                 int
}

// spread adds values up; of none all is NaN.
func spread(values []float64) Spread {
	n := len(values)
	if n == 0 {
		return Spread{math.NaN(), math.NaN(), math.NaN(), 0}
	}
	sorted := slices.Sorted(slices.Values(values))
	return Spread{(sorted[(n-1)/2] + sorted[n/2]) / 2, sorted[0], sorted[n-1], n}
}

func (s Spread) String() string {
	switch {
	case s.N == 0:
		return "–"
	case s.Low == s.High:
		return digits(s.Median)
	}
	return fmt.Sprintf("%s [%s, %s]", digits(s.Median), digits(s.Low), digits(s.High))
}

// Middle is the median alone.
func (s Spread) Middle() string {
	s.Low, s.High = s.Median, s.Median
	return s.String()
}

// digits writes three significant digits, and more only where a whole number has them.
func digits(v float64) string {
	if math.Abs(v) >= 100 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}

// look finds rows of one repetition.
type look struct {
	rows       []Row
	repetition int
	missed     *bool // a row was asked for that is not there, or not valid
}

func (l look) at(arm, disturbance, path string) Row {
	for _, r := range l.rows {
		if r.Valid && r.Repetition == l.repetition && r.Arm == arm && r.Disturbance == disturbance && r.Path == path {
			return r
		}
	}
	*l.missed = true
	return Row{}
}

// paired gives the spread of a quantity over the repetitions in which all rows that it is made of are valid.
func (r Record) paired(quantity func(look) float64) Spread {
	var values []float64
	for _, repetition := range r.repetitions() {
		missed := false
		v := quantity(look{r.Rows, repetition, &missed})
		if !missed && !math.IsNaN(v) && !math.IsInf(v, 0) {
			values = append(values, v)
		}
	}
	return spread(values)
}

func (r Record) repetitions() (list []int) {
	for _, row := range r.Rows {
		if !slices.Contains(list, row.Repetition) {
			list = append(list, row.Repetition)
		}
	}
	slices.Sort(list)
	return list
}

// names are the different values of a column, in order of appearance.
func (r Record) names(column func(Row) string) (list []string) {
	for _, row := range r.Rows {
		if v := column(row); !slices.Contains(list, v) {
			list = append(list, v)
		}
	}
	return list
}

func (r Record) has(arm, disturbance string) bool {
	return slices.ContainsFunc(r.Rows, func(row Row) bool { return row.Arm == arm && row.Disturbance == disturbance })
}
