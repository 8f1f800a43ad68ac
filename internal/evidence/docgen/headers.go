package docgen

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// Headers is a page of what each of the scheduler's headers is about, by path.
func Headers(headers map[string][]byte) (string, error) {
	var page strings.Builder
	page.WriteString("# The scheduler's headers\n" + notice + `One idea each, in ` + "`sched/`" + `. ` + "`temper.bpf.c`" + ` has the ops that the kernel calls, in the order a task meets them.

| Header | What it is about |
| --- | --- |
`)
	for _, path := range slices.Sorted(maps.Keys(headers)) {
		about, err := about(string(headers[path]))
		if err != nil {
			return "", fmt.Errorf("%s: %w", path, err)
		}
		name := filepath.Base(path)
		fmt.Fprintf(&page, "| [`%s`](../../sched/%s) | %s |\n", name, name, about)
	}
	return page.String(), nil
}

// about is the first sentence of the comment that follows that of the licence.
func about(header string) (string, error) {
	_, comment, found := strings.Cut(header, "\n/*\n * ")
	if !found {
		return "", fmt.Errorf("no comment says what it is about")
	}
	comment, _, _ = strings.Cut(comment, "*/")
	paragraph, _, _ := strings.Cut(comment, "\n *\n")
	sentence, _, _ := strings.Cut(strings.Join(strings.Fields(strings.ReplaceAll(paragraph, "\n * ", " ")), " "), ". ")
	return strings.TrimSuffix(sentence, "."), nil
}
