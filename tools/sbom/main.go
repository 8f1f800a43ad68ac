// Command sbom writes a software bill of materials for programs, in CycloneDX's JSON: what is linked into each, and in
// which version. The same programs give the same bytes.
package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

const usage = `Usage: sbom FILE PROGRAM...

Write to FILE which modules the programs were built of. A Go program says so itself. Of another, name the Debian packages
that are linked into it: scx_temper=libbpf-dev,libelf-dev.
`

func main() {
	flag.Usage = func() { fmt.Fprint(flag.CommandLine.Output(), usage) }
	flag.Parse()
	if flag.NArg() < 2 {
		flag.CommandLine.SetOutput(os.Stderr)
		flag.Usage()
		os.Exit(2)
	}
	if err := run(flag.Arg(0), flag.Args()[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func run(out string, programs []string) (err error) {
	bill, err := billOf(programs)
	if err != nil {
		return err
	}
	file, err := os.Create(out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return cdx.NewBOMEncoder(file, cdx.BOMFileFormatJSON).SetPretty(true).Encode(bill)
}

// billOf lists the programs, each with its parts. It has no serial number and no time: they would differ each time.
func billOf(programs []string) (*cdx.BOM, error) {
	bill := cdx.NewBOM()
	bill.Components = &[]cdx.Component{}
	for _, program := range programs {
		path, packages, _ := strings.Cut(program, "=")
		parts, err := partsOf(path, packages)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		*bill.Components = append(*bill.Components, cdx.Component{
			BOMRef: filepath.Base(path), Type: cdx.ComponentTypeApplication, Name: filepath.Base(path), Components: &parts,
			Hashes: &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: fmt.Sprintf("%x", sha256.Sum256(data))}},
		})
	}
	return bill, nil
}

// partsOf are what is linked into a program: packages, if there are any, else what it says itself.
func partsOf(path, packages string) ([]cdx.Component, error) {
	if packages != "" {
		return packagesOf(strings.Split(packages, ","))
	}
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("it does not say what it is built of; name the packages: %w", err)
	}
	parts := []cdx.Component{library("std", info.GoVersion, "pkg:golang/std@"+strings.TrimPrefix(info.GoVersion, "go"))}
	for _, module := range info.Deps {
		parts = append(parts, moduleOf(module))
	}
	return parts, nil
}

func moduleOf(m *debug.Module) cdx.Component {
	if m.Replace != nil {
		m = m.Replace
	}
	c := library(m.Path, m.Version, "pkg:golang/"+m.Path+"@"+m.Version)
	if m.Sum != "" { // what go.sum says: no hash of a file, but of a list of hashes
		c.Properties = &[]cdx.Property{{Name: "go:sum", Value: m.Sum}}
	}
	return c
}

// packagesOf are installed packages of this distribution.
func packagesOf(names []string) ([]cdx.Component, error) {
	var parts []cdx.Component
	for _, name := range names {
		version, err := exec.Command("dpkg-query", "--show", "--showformat", "${Version}", name).Output()
		if err != nil {
			return nil, fmt.Errorf("package %s: %w; is it installed?", name, err)
		}
		parts = append(parts, library(name, string(version), "pkg:deb/debian/"+name+"@"+string(version)))
	}
	return parts, nil
}

func library(name, version, purl string) cdx.Component {
	return cdx.Component{Type: cdx.ComponentTypeLibrary, Name: name, Version: version, PackageURL: purl}
}
