package workload

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"temper.dev/temper/internal/base/exit"
)

// reader reads the nodes of one file.
type reader struct{ path, folder string }

// field is one that a mapping may have.
type field struct {
	name string
	read func(*yaml.Node) error
}

// Fail is an error about a place.
func (p Place) Fail(status int, cure, format string, args ...any) error {
	return exit.New(status, cure, "%s:%d:%d: %s", p.File, p.Line, p.Column, fmt.Sprintf(format, args...))
}

func (r reader) place(n *yaml.Node) Place { return Place{r.path, n.Line, n.Column} }

func (r reader) fail(n *yaml.Node, cure, format string, args ...any) error {
	return r.place(n).Fail(exit.Config, cure, format, args...)
}

// mapping reads a mapping's fields, and refuses those that it does not know, and those that stand twice.
func (r reader) mapping(n *yaml.Node, what string, fields ...field) error {
	if n.Kind != yaml.MappingNode {
		return r.fail(n, "", "%s has fields: %s", what, namesOf(fields))
	}
	seen := map[string]bool{}
	for i := 0; i < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		at := slices.IndexFunc(fields, func(f field) bool { return f.name == key.Value })
		if at < 0 {
			return r.fail(key, "choose from "+namesOf(fields), "%s has no field %q", what, key.Value)
		}
		if seen[key.Value] {
			return r.fail(key, "leave one out", "%q stands twice", key.Value)
		}
		seen[key.Value] = true
		if err := fields[at].read(value); err != nil {
			return err
		}
	}
	return nil
}

func namesOf(fields []field) string {
	var names []string
	for _, f := range fields {
		names = append(names, f.name)
	}
	return strings.Join(names, ", ")
}

func (r reader) list(n *yaml.Node, what string, item func(*yaml.Node) error) error {
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
		return r.fail(n, "write [...]", "%s is a list of one or more", what)
	}
	for _, c := range n.Content {
		if err := item(c); err != nil {
			return err
		}
	}
	return nil
}

func (r reader) text(n *yaml.Node, what string) (string, error) {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" || n.Value == "" {
		return "", r.fail(n, "", "%s is a word or a text", what)
	}
	return n.Value, nil
}

func (r reader) texts(n *yaml.Node, what string, to *[]string) error {
	*to = nil
	return r.list(n, what, func(item *yaml.Node) error {
		if item.Kind == yaml.ScalarNode && item.Tag == "!!str" && item.Value == "" { // "", which is a word of a command
			*to = append(*to, "")
			return nil
		}
		text, err := r.text(item, "one of "+what)
		*to = append(*to, text)
		return err
	})
}

func (r reader) whole(n *yaml.Node, what string, least, most int) (int, error) {
	value, err := strconv.Atoi(n.Value)
	if err != nil || n.Kind != yaml.ScalarNode || value < least || value > most {
		return 0, r.fail(n, "", "%s is a whole number from %d to %d, not %q", what, least, most, n.Value)
	}
	return value, nil
}

func (r reader) number(n *yaml.Node, what string, most float64) (float64, error) {
	value, err := strconv.ParseFloat(n.Value, 64)
	// Written so that what is not a number (NaN) is refused, too.
	if err != nil || n.Kind != yaml.ScalarNode || !(value > 0 && value <= most) {
		return 0, r.fail(n, "", "%s is a number above 0, up to %g, not %q", what, most, n.Value)
	}
	return value, nil
}

func (r reader) share(n *yaml.Node, what string) (float64, error) {
	value, err := strconv.ParseFloat(n.Value, 64)
	if err != nil || n.Kind != yaml.ScalarNode || !(value >= 0 && value <= 1) {
		return 0, r.fail(n, "", "%s is a share, a number from 0 to 1, not %q", what, n.Value)
	}
	return value, nil
}

// as makes a field of a function that reads a value.
func as[T any](name string, to *T, read func(n *yaml.Node, what string) (T, error)) field {
	return field{name, func(n *yaml.Node) (err error) {
		*to, err = read(n, name)
		return err
	}}
}

func (r reader) wholes(least, most int) func(*yaml.Node, string) (int, error) {
	return func(n *yaml.Node, what string) (int, error) { return r.whole(n, what, least, most) }
}

func (r reader) numbers(most float64) func(*yaml.Node, string) (float64, error) {
	return func(n *yaml.Node, what string) (float64, error) { return r.number(n, what, most) }
}
