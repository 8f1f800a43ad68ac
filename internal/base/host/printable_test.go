package host

import "testing"

func TestPrintable(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"", ""},
		{"/system.slice/a b.service", "/system.slice/a b.service"},
		{"/größe/日本/\ufffd", "/größe/日本/\ufffd"},
		{`/a\xff`, `/a\xff`},
		{"/a\xff", `"/a\xff"`},
		{"x\frung\tscx", `"x\frung\tscx"`},
		{"\x1b[2J\n", `"\x1b[2J\n"`},
		{"right\u202eleft", `"right\u202eleft"`},
	} {
		if got := Printable(test.text); got != test.want {
			t.Errorf("%q: %s, want %s", test.text, got, test.want)
		}
		if again := Printable(test.want); again != test.want {
			t.Errorf("%s: %s, done twice", test.want, again)
		}
	}
}
