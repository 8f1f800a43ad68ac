package listening

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// dpkgQuery asks Debian's package database; none: it has no answer, or there is no such database.
func dpkgQuery(args ...string) (out []byte, none bool, err error) {
	cmd := exec.Command("dpkg-query", args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	out, err = cmd.Output()
	_, failed := errors.AsType[*exec.ExitError](err)
	if failed || errors.Is(err, exec.ErrNotFound) {
		return nil, true, nil
	}
	return out, false, err
}

// PackageOf is the Debian package that has a file; "": none. Packages know files of /usr as they were before /usr took /bin and
// /lib in.
func PackageOf(path string) (string, error) {
	for _, name := range []string{path, strings.TrimPrefix(path, "/usr")} {
		out, none, err := dpkgQuery("--search", name)
		if err != nil {
			return "", err
		}
		if none {
			continue
		}
		for line := range bytes.Lines(out) { // "package: path", or "package:amd64: path"; a diversion has another form
			if of, file, ok := strings.Cut(strings.TrimSpace(string(line)), ": "); ok && file == name && !strings.Contains(of, " ") {
				of, _, _ = strings.Cut(of, ":")
				return of, nil
			}
		}
	}
	return "", nil
}

// Companions are the packages that one depends on and that come from the same source: parts of the same software, such as what
// several packages of it have in common.
func Companions(name string) (companions []string, err error) {
	source, depends, err := sourceOf(name)
	if err != nil || source == "" {
		return nil, err
	}
	for dependency := range strings.SplitSeq(depends, ",") {
		words := strings.Fields(dependency) // "nginx-common (= 1.22.1)", or alternatives with |
		if len(words) == 0 {
			continue
		}
		other, _, _ := strings.Cut(words[0], ":")
		from, _, err := sourceOf(other)
		if err != nil {
			return nil, err
		}
		if from == source && !slices.Contains(companions, other) {
			companions = append(companions, other)
		}
	}
	return companions, nil
}

// StateFolders are the folders below /var that a package has for what its programs write.
func StateFolders(name string) (folders []string, err error) {
	out, none, err := dpkgQuery("--listfiles", name)
	if err != nil || none {
		return nil, err
	}
	for line := range bytes.Lines(out) {
		file := strings.TrimSpace(string(line))
		if !strings.HasPrefix(file, "/var/") || strings.Count(file, "/") < 3 { // /var/lib and the like are there
			continue
		}
		if info, err := os.Stat(file); err == nil && info.IsDir() {
			folders = append(folders, file)
		}
	}
	return folders, nil
}

// sourceOf is the source of a package that is installed, and what it depends on; "": it is not installed.
func sourceOf(name string) (source, depends string, err error) {
	out, none, err := dpkgQuery("--show", "--showformat=${source:Package}\n${Depends}\n", name)
	if err != nil || none {
		return "", "", err
	}
	source, rest, _ := strings.Cut(string(out), "\n")
	depends, _, _ = strings.Cut(rest, "\n")
	return source, depends, nil
}
