package bench_test

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"temper.dev/temper/internal/evidence/bench"
)

// fields lists the JSON paths of a struct and their types, in order: "machine.kind string".
func fields(prefix string, t reflect.Type) []string {
	var out []string
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		typ := f.Type
		if typ.Kind() == reflect.Slice {
			name, typ = name+"[]", typ.Elem()
		}
		switch typ.Kind() {
		case reflect.Struct:
			out = append(out, fields(prefix+name+".", typ)...)
		default:
			kind := map[reflect.Kind]string{
				reflect.String: "string", reflect.Bool: "boolean", reflect.Float64: "number",
				reflect.Int: "integer", reflect.Int64: "integer", reflect.Uint64: "integer",
			}[typ.Kind()]
			out = append(out, prefix+name+" "+kind)
		}
	}
	return out
}

func TestDocumentedFieldsAreThoseOfTheRecord(t *testing.T) {
	text, err := os.ReadFile("../../../docs/records.md")
	if err != nil {
		t.Fatal(err)
	}
	var documented []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (\\w+) \\| .*\\| .+ \\|$").FindAllStringSubmatch(string(text), -1) {
		documented = append(documented, m[1]+" "+m[2])
	}
	if want := fields("", reflect.TypeFor[bench.Record]()); !slices.Equal(documented, want) {
		t.Errorf("docs/records.md has\n%s\nand the record\n%s", strings.Join(documented, "\n"), strings.Join(want, "\n"))
	}
}
