package inlab

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// Where things are in the guest.
const (
	home    = "/bench"
	program = home + "/pathfence-bench-node"
	Node    = home + "/node" // starts the program on the services' CPUs, with as many files as clients may ask for, and its own libraries
	client  = home + "/bench"
)

// Files are what a guest needs, by where it has them: the path of each on the host.
type Files map[string]string

// Pack finds the files: the benchmark itself, which has to be linked statically, and the node with its libraries, since
// the guest has others. The launcher is written into a folder.
func Pack(bench, node, folder string) (Files, error) {
	libraries, err := librariesOf(node)
	if err != nil {
		return nil, err
	}
	files := Files{client: bench, program: node, Node: filepath.Join(folder, "launcher")}
	loader := ""
	for _, library := range libraries {
		files[home+"/lib/"+filepath.Base(library)] = library
		if strings.HasPrefix(filepath.Base(library), "ld-linux") {
			loader = home + "/lib/" + filepath.Base(library)
		}
	}
	if loader == "" {
		return nil, fmt.Errorf("%s names no loader", node)
	}
	script := fmt.Sprintf("#!/bin/sh\nulimit -n 65536\nexec taskset -c %s %s --library-path %s/lib %s \"$@\"\n", serverCPUs, loader, home, program)
	return files, os.WriteFile(files[Node], []byte(script), 0o755)
}

// Hashes are those of the files, by name.
func (f Files) Hashes() (map[string]string, error) {
	hashes := map[string]string{}
	for place, file := range f {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(content)
		hashes[filepath.Base(place)] = hex.EncodeToString(sum[:])
	}
	return hashes, nil
}

var libraryPath = regexp.MustCompile(`(/\S+) \(0x`)

// librariesOf asks the loader which files it would load, itself included; ldd(1) is that question.
func librariesOf(program string) (files []string, err error) {
	out, err := exec.Command("ldd", program).Output()
	if err != nil {
		return nil, fmt.Errorf("ldd %s: %w", program, err)
	}
	if strings.Contains(string(out), "not found") {
		return nil, fmt.Errorf("%s lacks libraries: %s", program, out)
	}
	for _, match := range libraryPath.FindAllStringSubmatch(string(out), -1) {
		files = append(files, match[1])
	}
	return files, nil
}
