package kernels

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"temper.dev/temper/lab/cache"
)

func TestCompareVersionsOrdersAsDpkgDoes(t *testing.T) {
	ascending := []string{"6.18~rc1", "6.18", "6.18.9+deb13-1~bpo13+1", "6.18.9+deb13-1", "6.18.15+deb13", "6.18.15+deb14", "6.19.2", "7.0", "7.0a", "7.0+1", "10"}
	for i, a := range ascending {
		for j, b := range ascending {
			got, want := max(-1, min(1, compareVersions(a, b))), max(-1, min(1, i-j))
			if got != want {
				t.Errorf("%s against %s: got %d, want %d", a, b, got, want)
			}
		}
	}
	if compareVersions("1.02", "1.2") != 0 {
		t.Error("leading zeros count")
	}
}

func TestKernelsIn(t *testing.T) {
	kernels := kernelsIn("trixie-backports", []string{
		"linux-image-6.18.9+deb13-cloud-amd64", "linux-image-6.18.15+deb13-cloud-amd64",
		"linux-image-6.19.14+deb13-cloud-amd64", "linux-binary-6.19.14+deb13-cloud-amd64",
		"linux-image-6.18.15+deb13-cloud-amd64-dbg", "linux-binary-unsigned-7.3.4+deb13-cloud-amd64",
		"linux-image-6.18.15+deb13-amd64", "linux-image-cloud-amd64", "linux-headers-6.18.15+deb13-cloud-amd64",
	})
	want := []Kernel{
		{Release: "6.19.14+deb13-cloud-amd64", Series: "6.19", Suite: "trixie-backports", pkg: "linux-binary-6.19.14+deb13-cloud-amd64"},
		{Release: "6.18.15+deb13-cloud-amd64", Series: "6.18", Suite: "trixie-backports", pkg: "linux-image-6.18.15+deb13-cloud-amd64"},
		{Release: "6.18.9+deb13-cloud-amd64", Series: "6.18", Suite: "trixie-backports", pkg: "linux-image-6.18.9+deb13-cloud-amd64"},
	}
	if !slices.Equal(kernels, want) {
		t.Errorf("got %+v\nwant %+v", kernels, want)
	}
}

func TestKernelMatches(t *testing.T) {
	k := Kernel{Release: "6.18.15+deb13-cloud-amd64"}
	for want, matches := range map[string]bool{
		"6.18": true, "6.18.15": true, k.Release: true, "6.1": false, "6.18.1": false, "7.0": false, "": false,
	} {
		if k.matches(want) != matches {
			t.Errorf("%q: got %v", want, !matches)
		}
	}
}

func TestCachedKernelIsUsedWithoutTheArchive(t *testing.T) {
	c := cache.Folder(t.TempDir())
	for _, release := range []string{"6.18.9+deb13-cloud-amd64", "6.18.15+deb13-cloud-amd64", "7.0.13+deb13-cloud-amd64", "6.12.117-temper", "build.x"} {
		if err := os.MkdirAll(folder(c, release), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	k, err := Find(t.Context(), c, "6.18", func(string) { t.Error("fetches") })
	if err != nil || k.Release != "6.18.15+deb13-cloud-amd64" {
		t.Errorf("got %v, %v", k.Release, err)
	}
	if k, err = Find(t.Context(), c, "6.12", func(string) { t.Error("fetches") }); err != nil || k.Release != "6.12.117-temper" {
		t.Errorf("got %v, %v", k.Release, err)
	}
	if all, err := Cached(c); len(all) != 4 || err != nil {
		t.Errorf("got %v, %v", all, err)
	}
	merged := mergeCached([]Kernel{{Release: "7.0.13+deb13-cloud-amd64", pkg: "p"}}, []Kernel{{Release: "6.18.9+deb13-cloud-amd64", Cached: true}, {Release: "7.0.13+deb13-cloud-amd64", Cached: true}})
	if len(merged) != 2 || !merged[0].Cached || merged[1].Release != "6.18.9+deb13-cloud-amd64" {
		t.Errorf("got %+v", merged)
	}
}

func TestFindInPackage(t *testing.T) {
	k := Kernel{Release: "7.2.12+deb14-cloud-amd64", pkg: "p"}
	root := t.TempDir()
	if _, err := findInPackage(root, "vmlinuz", k); err == nil {
		t.Error("found one in an empty package")
	}
	dir := filepath.Join(root, "package/usr/lib/modules", k.Release)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	want := filepath.Join(dir, "vmlinuz")
	if err := os.WriteFile(want, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if got, err := findInPackage(root, "vmlinuz", k); got != want || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}
