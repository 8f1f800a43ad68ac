package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// Difference is one value that two records do not share.
type Difference struct {
	Path string // "arms[1].steps[2].p99_ms"
	A, B string // as JSON; "(absent)" where a record lacks the value
}

func (d Difference) String() string { return fmt.Sprintf("%s: %s and %s", d.Path, d.A, d.B) }

// Compare lists every value in which two records, as JSON, differ. It compares the text of numbers, so that not even
// the last digit may differ, and also fields that this version does not know.
func Compare(a, b []byte) ([]Difference, error) {
	var trees [2]any
	for i, text := range [][]byte{a, b} {
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber()
		if err := d.Decode(&trees[i]); err != nil {
			return nil, fmt.Errorf("record %d of 2: %w", i+1, err)
		}
	}
	return differences("", trees[0], trees[1], nil), nil
}

func differences(path string, a, b any, found []Difference) []Difference {
	switch x := a.(type) {
	case map[string]any:
		if y, ok := b.(map[string]any); ok {
			return objectDifferences(path, x, y, found)
		}
	case []any:
		if y, ok := b.([]any); ok && len(x) == len(y) {
			for i := range x {
				found = differences(fmt.Sprintf("%s[%d]", path, i), x[i], y[i], found)
			}
			return found
		}
	default:
		if x == b { // strings, numbers as text, booleans, null
			return found
		}
	}
	return append(found, Difference{path, brief(a), brief(b)})
}

func objectDifferences(path string, a, b map[string]any, found []Difference) []Difference {
	keys := maps.Clone(a)
	maps.Copy(keys, b)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		x, inA := a[key]
		y, inB := b[key]
		below := key
		if path != "" {
			below = path + "." + key
		}
		switch {
		case !inA:
			found = append(found, Difference{below, "(absent)", brief(y)})
		case !inB:
			found = append(found, Difference{below, brief(x), "(absent)"})
		default:
			found = differences(below, x, y, found)
		}
	}
	return found
}

// brief is a value as JSON, cut to what fits a line; lists are told by their length.
func brief(v any) string {
	if l, ok := v.([]any); ok {
		return fmt.Sprintf("a list of %d", len(l))
	}
	text, err := json.Marshal(v)
	if err != nil { // cannot be: v came from JSON
		return err.Error()
	}
	const most = 60
	if len(text) > most {
		return string(text[:most]) + "…"
	}
	return string(text)
}
