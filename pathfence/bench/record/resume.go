package record

import (
	"encoding/json"
	"maps"
	"reflect"

	"temper.dev/temper/internal/base/exit"
)

// Resume takes over what a record has that was begun with the same plan, seed and programs, on the same kernel. A record of
// the lab takes its kernel from that, too: it knows it only from its guests.
func (r *Record) Resume(begun Record) error {
	same := begun.Seed == r.Seed && reflect.DeepEqual(plain(begun.Plan), plain(r.Plan)) && begun.Machine.is(r.Machine)
	if !same {
		return exit.New(exit.Usage, "move it away, or build and ask for the same again", "the record there is of another plan, seed, build or machine")
	}
	r.Machine, r.Instructions, r.Rows = begun.Machine, begun.Instructions, begun.Rows
	return nil
}

func (m Machine) is(now Machine) bool {
	return m.CPUs == now.CPUs && m.Lab == now.Lab && (m.Lab || m.Kernel == now.Kernel) && maps.Equal(m.Hashes, now.Hashes)
}

// plain is a value as a file has it.
func plain(v any) (out any) {
	text, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	if err != nil {
		panic(err) // plans hold nothing that JSON cannot
	}
	return out
}
