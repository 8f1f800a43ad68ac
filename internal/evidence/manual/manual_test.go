package manual

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

const operations = "# A\n## Exit statuses\nAll.\n\n| Status | Meaning |\n| --- | --- |\n| 0 | well |\n| 12 | no disk (`temper-lab`) |\n\nWith `tool run`.\n\n" +
	"## Files\n| File | Content |\n| --- | --- |\n| `/etc/tool` | the [one](y.md) of `a` and `b` ([why](z.md)) |\n\n## More\n| no | no |\n"

func example() *cobra.Command {
	root := &cobra.Command{Use: "tool", Short: "Do all", Long: "Tool does all.", Run: func(*cobra.Command, []string) {}}
	sub := &cobra.Command{
		Use: "show WHAT", Short: "Show the owner's things", Run: func(*cobra.Command, []string) {},
		Long: `Show *.x and *.y, <b> and [c](d), --all.
.dots are text, 'quotes' too.
- so is this
The columns:
  FIRST   *is* the first

  .ECOND  is the second
Then more.`,
		Example: "  tool show a\n    tool show b   # deeper",
	}
	sub.Flags().StringP("out", "o", "-", "write to `FILE`")
	sub.Flags().Bool("json", false, "print JSON")
	root.AddCommand(sub)
	return root
}

func lacks(t *testing.T, name, page string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(page, part) {
			t.Errorf("%s lacks %q:\n%s", name, part, page)
		}
	}
}

func TestCommands(t *testing.T) {
	pages, err := Commands(example(), doc.GenManHeader{Source: "Tool 1"}, []byte(operations))
	if err != nil {
		t.Fatal(err)
	}
	if names := slices.Sorted(maps.Keys(pages)); !slices.Equal(names, []string{"tool-show.1", "tool.1"}) {
		t.Fatalf("the pages are %q", names)
	}
	read := strings.NewReplacer(`\&`, "").Replace // it prints nothing
	lacks(t, "tool(1)", read(pages["tool.1"]),
		"\n.nh\n.nr HY 0\n.ad l\n.tr ", "\\fBtool COMMAND [flags]\\fP\n", ".SH COMMANDS\n.TP\n\\fBshow\\fP\nShow the owner's things. See \\fBtool-show\\fP(1).\n",
		".SH EXIT STATUS\n.TP\n\\fB0\\fP\nwell\n\n.PP\nWith \\fBtool run\\fR.\n", ".SH FILES\n.TP\n\\fB/etc/tool\\fP\nthe one of \\fBa\\fR and \\fBb\\fR\n\n\n.SH SEE ALSO\n",
		"\\fBtool-show\\fP(1), \\fBscx_temper\\fP(8)\n",
	)
	lacks(t, "tool-show(1)", read(pages["tool-show.1"]),
		"\nShow *.x and *.y, <b> and [c](d), --all.\n.dots are text, 'quotes' too.\n- so is this\nThe columns:\n",
		"\n.EX\n  FIRST   *is* the first\n\n  .ECOND  is the second\n.EE\n\n.PP\nThen more.\n",
		"\n.TP\n\\fB-o\\fP, \\fB--out\\fP=\"-\"\nwrite to \\fBFILE\\fR\n", "\n.TP\n\\fB--json\\fP\nprint JSON\n",
		"\n.EX\n  tool show a\n    tool show b   # deeper\n.EE\n", "\\fBtool\\fP(1) says what the others mean.\n",
	)
	lacks(t, "tool-show(1)", pages["tool-show.1"], "\n\\&.dots")
	if _, err := Commands(example(), doc.GenManHeader{}, nil); err == nil {
		t.Error("pages are made without tables")
	}
}

func TestLoader(t *testing.T) {
	page, err := Loader("tool: a tool\n\nusage: tool [OPTION]...\n\n  --in A=B   read,\n             and --not write\n  --version, --help\n\nSignals: SIGTERM\nends it.\n\nExample: tool --in 1\n", doc.GenManHeader{Section: "8"})
	if err != nil {
		t.Fatal(err)
	}
	lacks(t, "tool(8)", page, `.TH "TOOL" "8"`, "\ntool - a tool\n", "\n\\fBtool [OPTION]...\\fP\n", "\n.TP\n\\fB--in A=B\\fP\nread,\nand --not write\n",
		"\n\\fB--version, --help\\fP\n", ".SH SIGNALS\nSIGTERM\nends it.\n", "\n.EX\n  tool --in 1\n.EE\n", ".SH EXIT STATUS\n")
	for _, odd := range []string{"no name", "tool: a tool\n\nusage: tool\n"} {
		if _, err := Loader(odd, doc.GenManHeader{}); err == nil {
			t.Errorf("%q is taken for a help text", odd)
		}
	}
}
