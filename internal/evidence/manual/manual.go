// Package manual writes manual pages: of commands, from their help and the tables of docs/operations.md; of scx_temper, from
// its help text. It prepares Markdown, which cobra/doc and md2man turn into roff.
package manual

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/cpuguy83/go-md2man/v2/md2man"
	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// Commands are the pages of a program and of its commands, by file name. They change root's texts.
func Commands(root *cobra.Command, header doc.GenManHeader, operations []byte) (map[string]string, error) {
	statuses, err := definitions(operations, "Exit statuses")
	if err != nil {
		return nil, err
	}
	files, err := definitions(operations, "Files")
	if err != nil {
		return nil, err
	}
	pages := map[string]string{}
	commands, others := "\n\n# COMMANDS\n", ""
	for _, cmd := range root.Commands() {
		if !cmd.IsAvailableCommand() || cmd.Name() == "completion" {
			continue
		}
		name := root.Name() + "-" + cmd.Name()
		cmd.Long = markdown(cmd.Long)
		if pages[name+".1"], err = page(cmd, header, status(root.Name())+"# SEE ALSO\n**"+root.Name()+"**(1), **scx_temper**(8)\n"); err != nil {
			return nil, err
		}
		commands += fmt.Sprintf("**%s**\n: %s. See **%s**(1).\n\n", cmd.Name(), cmd.Short, name)
		others += "**" + name + "**(1), "
	}
	root.Use += " COMMAND"
	root.Long = markdown(root.Long) + commands
	pages[root.Name()+".1"], err = page(root, header, "# EXIT STATUS\n"+statuses+"# FILES\n"+files+"# SEE ALSO\n"+others+"**scx_temper**(8)\n")
	return pages, err
}

var (
	loaderHelp = regexp.MustCompile(`(?s)^(\w+): (.*?)\n\nusage: (.*?)\n\n(  --.*?)\n\nSignals: (.*?)\n\nExample: (.*?)\n$`)
	option     = regexp.MustCompile(`(?m)^  (--.*?)(?:  +(.*))?$`)
)

// Loader is scx_temper's page, from what it says with --help.
func Loader(help string, header doc.GenManHeader) (string, error) {
	parts := loaderHelp.FindStringSubmatch(help)
	if parts == nil {
		return "", errors.New("the help text's parts are not NAME: WHAT, usage, options, Signals and Example")
	}
	var options strings.Builder
	for line := range strings.Lines(parts[4]) {
		if term := option.FindStringSubmatch(line); term == nil {
			options.WriteString(escape(strings.TrimSpace(line)) + "\n")
		} else if options.WriteString("\n**" + escape(term[1]) + "**\n"); term[2] != "" {
			options.WriteString(": " + escape(term[2]) + "\n")
		}
	}
	cmd := &cobra.Command{
		Use: parts[3], DisableFlagsInUseLine: true, Short: parts[2], Example: "  " + parts[6], Run: func(*cobra.Command, []string) {},
		Long: parts[1] + " loads and attaches Temper's scheduler, and keeps it attached while it runs. **temper-agent**(1) starts it; " +
			"it also runs alone, as root.\n\n# OPTIONS\n" + options.String() + "\n# SIGNALS\n" + escape(parts[5]),
	}
	cmd.Flags().Bool("help", false, "")
	cmd.Flags().Lookup("help").Hidden = true // or cobra adds one
	return page(cmd, header, status("temper")+"# SEE ALSO\n**temper**(1), **temper-agent**(1), **temper-doctor**(1)\n")
}

func status(program string) string {
	return "# EXIT STATUS\nUnless said otherwise above: 0 if all is well. **" + program + "**(1) says what the others mean.\n\n"
}

// flag is one of cobra's in roff, up to its meaning: its name and default, without that of switches.
var flag = regexp.MustCompile(`(?m)^(?:\.PP\n)?(\\fB-.*?)(?:\[=false\])?\n\t`)

// preamble stands below .TH, which undoes the .nh that md2man writes above it; .EE restores hyphenation as HY has it.
// Dashes and quotes are those of a keyboard, to copy.
const preamble = "\n.nh\n.nr HY 0\n.ad l\n.tr -\\-'\\(aq`\\(ga^\\(ha~\\(ti"

// page is a command's, with sections of Markdown in place of cobra's SEE ALSO. Two things are changed in the roff, since
// Markdown cannot prevent them: md2man's preamble, and cobra's flags, whose meaning would stand on the same line.
func page(cmd *cobra.Command, header doc.GenManHeader, sections string) (string, error) {
	cmd.DisableAutoGenTag = true
	var b strings.Builder
	if err := doc.GenMan(cmd, &header, &b); err != nil {
		return "", err
	}
	text, _, _ := strings.Cut(b.String(), "\n.SH SEE ALSO\n")
	_, more, _ := strings.Cut(string(md2man.Render([]byte("% title\n"+sections))), "\n.SH ")
	text = flag.ReplaceAllString(text, ".TP\n$1\n")
	text = strings.Replace(text, "\n.SH ", preamble+"\n.SH ", 1)
	return strings.TrimRight(text, "\n") + "\n.SH " + more, nil
}

var special = regexp.MustCompile("[\\\\`*_\\[\\]<>&#+:-]")

// escape makes text of what Markdown would take for marks.
func escape(text string) string { return special.ReplaceAllString(text, `\$0`) }

// markdown is a command's text as Markdown: indented lines, all of them, are a code block, and keep their indentation.
func markdown(long string) string {
	var b strings.Builder
	indented := false
	for line := range strings.Lines(strings.Trim(long, "\n")) {
		if was := indented; line != "\n" {
			if indented = strings.HasPrefix(line, " "); indented != was {
				b.WriteString("\n")
			}
		}
		if indented {
			b.WriteString("    " + line)
		} else {
			b.WriteString(escape(line))
		}
	}
	return b.String()
}
