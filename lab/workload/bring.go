package workload

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"temper.dev/temper/lab/listening"
	"temper.dev/temper/lab/plan"
)

// mostBrought bounds what a proposal brings of a folder: the guest has it in memory.
const mostBrought = 64 << 20

// named brings the file or folder of this host that an argument names: by itself, or behind a =.
func (o *proposal) named(argument string) {
	if strings.HasPrefix(argument, "-") {
		_, argument, _ = strings.Cut(argument, "=")
	}
	switch {
	case argument == "":
	case filepath.IsAbs(argument):
		o.bring(filepath.Clean(argument), argument)
	default:
		o.bring(path.Join(plan.ServicesFolder, o.name, argument), filepath.Join(o.Folder, argument))
	}
}

// bring notes a file or folder that is there, and that the guest can hold.
func (o *proposal) bring(guest, host string) {
	top, below, _ := strings.Cut(strings.TrimPrefix(guest, "/"), "/")
	size, err := sizeOf(host)
	switch {
	case err != nil, below == "" || slices.Contains(reserved, top), slices.Contains(o.files, [2]string{guest, host}): // it is no path, or the guest has its own
	case size > mostBrought:
		o.note("%s has more than %d MB, and is left out: the guest has its files in memory.", host, mostBrought>>20)
	default:
		o.files = append(o.files, [2]string{guest, host})
		o.bringLinked(host)
		if strings.HasPrefix(host, "/etc/") {
			o.bringConfigured(host)
		}
	}
}

// configured are places where people keep what their services serve.
var configured = regexp.MustCompile(`(?m)^[^#\n]*?(/(?:data|home|opt|srv|var/www)/[A-Za-z0-9_./-]*[A-Za-z0-9_-])`)

// bringConfigured brings what configuration names, such as a document root.
func (o *proposal) bringConfigured(configuration string) {
	const mostText = 1 << 20                                                                    // more is no configuration that people write
	_ = filepath.WalkDir(configuration, func(name string, entry fs.DirEntry, err error) error { // it was walked before
		if err != nil || entry.IsDir() {
			return nil
		}
		info, err := os.Stat(name)
		if err != nil || !info.Mode().IsRegular() || info.Size() > mostText {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return nil
		}
		for _, found := range configured.FindAllSubmatch(text, -1) {
			o.bring(string(found[1]), string(found[1]))
		}
		return nil
	})
}

// bringLinked brings what the links in a folder lead to: by its package, where that is a program's of one, else by itself.
func (o *proposal) bringLinked(folder string) {
	_ = filepath.WalkDir(folder, func(name string, entry fs.DirEntry, err error) error { // it was walked before
		if err != nil || entry.Type()&fs.ModeSymlink == 0 {
			return nil
		}
		target, err := filepath.EvalSymlinks(name)
		if err != nil || strings.HasPrefix(target, folder+"/") {
			return nil
		}
		of, err := listening.PackageOf(target)
		switch {
		case err != nil || of == "" || o.Package == "":
			o.bring(target, target)
		case !slices.Contains(o.packages, of):
			o.packages = append(o.packages, of)
		}
		return nil
	})
}

// sizeOf adds up a file, or what is in a folder, until that is too much.
func sizeOf(name string) (size int64, err error) {
	name, err = filepath.EvalSymlinks(name)
	if err != nil {
		return 0, err
	}
	err = filepath.WalkDir(name, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err == nil && info.Mode().IsRegular() {
			size += info.Size()
		}
		if size > mostBrought {
			return fs.SkipAll
		}
		return err
	})
	return size, err
}

// packagesOf are those that a program of this one takes to start. A package comes without what it depends on.
func packagesOf(name string) ([]string, error) {
	companions, err := listening.Companions(name)
	packages := append([]string{name}, companions...)
	version, minimal := strings.CutSuffix(name, "-minimal")
	switch {
	case minimal && strings.HasPrefix(name, "python3."): // its modules
		packages = append(packages, "lib"+version+"-stdlib")
	case strings.HasPrefix(name, "openjdk-"): // what it loads by itself
		packages = append(packages, "libstdc++6", "libgcc-s1")
	case name == "redis-tools": // the server is a link to one of its programs
		packages = append(packages, "redis-server")
	}
	return packages, err
}

func foldersOf(packages []string) (folders []string, err error) {
	for _, name := range packages {
		more, err := listening.StateFolders(name)
		if err != nil {
			return nil, err
		}
		folders = append(folders, more...)
	}
	return folders, nil
}
