// Command image writes a container image as an OCI archive, without a container engine: static programs and nothing else.
// The same programs give the same archive, to the byte.
package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const (
	usage = `Usage: image NAME ARCHIVE PROGRAM... [-- ARG...]

Write the image NAME, such as example.org/temper:1, to the file ARCHIVE. Its root holds the programs; it runs the first,
with the arguments.
`
	nameAnnotation = "org.opencontainers.image.ref.name"
	containerd     = "io.containerd.image.name" // without it, ctr calls the image by its tag alone
)

func main() {
	flag.Usage = func() { fmt.Fprint(flag.CommandLine.Output(), usage) }
	flag.Parse()
	if flag.NArg() < 3 {
		flag.CommandLine.SetOutput(os.Stderr)
		flag.Usage()
		os.Exit(2)
	}
	programs, args := flag.Args()[2:], []string(nil)
	if i := slices.Index(programs, "--"); i >= 0 {
		programs, args = programs[:i], programs[i+1:]
	}
	if err := run(flag.Arg(0), flag.Arg(1), programs, args); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func run(name, out string, programs, args []string) error {
	image, err := imageOf(programs, args)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "image")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	names := map[string]string{nameAnnotation: name, containerd: name}
	platform := layout.WithPlatform(v1.Platform{OS: "linux", Architecture: "amd64"})
	if err := path.AppendImage(image, layout.WithAnnotations(names), platform); err != nil {
		return err
	}
	return archive(dir, out)
}

func imageOf(programs, args []string) (v1.Image, error) {
	files, err := layerOf(programs)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(files)), nil },
		tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err := mutate.AppendLayers(base, layer)
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", "amd64"
	config.Config = v1.Config{Entrypoint: []string{"/" + filepath.Base(programs[0])}, Cmd: args, Env: []string{"PATH=/"}}
	return mutate.ConfigFile(image, config)
}

// layerOf is an archive of programs, all in its root and of the same time: what is in it depends on them alone.
func layerOf(programs []string) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, program := range programs {
		data, err := os.ReadFile(program)
		if err != nil {
			return nil, err
		}
		if err := add(w, filepath.Base(program), 0o755, data); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), w.Close()
}

// archive puts the files of a folder into one.
func archive(dir, out string) (err error) {
	file, err := os.Create(out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	w := tar.NewWriter(file)
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		return add(w, name, 0o644, data)
	})
	return errors.Join(err, w.Close())
}

func add(w *tar.Writer, name string, mode int64, data []byte) error {
	header := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(data)), ModTime: time.Unix(0, 0)}
	if err := w.WriteHeader(header); err != nil {
		return err
	}
	_, err := w.Write(data)
	return err
}
