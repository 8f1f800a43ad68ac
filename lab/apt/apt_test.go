package apt

import (
	"errors"
	"slices"
	"testing"

	"temper.dev/temper/internal/base/exit"
)

func TestParseDepends(t *testing.T) {
	got := parseDepends(`memcached
  PreDepends: init-system-helpers
 |Depends: adduser
  Depends: <perl:any>
    perl
  Depends: libc6
  Conflicts: other
`)
	if want := []string{"init-system-helpers", "adduser", "libc6"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestExplainApt(t *testing.T) {
	for _, c := range []struct {
		stderr, want string
		status       int
	}{
		{
			"E: Failed to fetch http://m.example/InRelease  Could not connect to m.example:80 (192.0.2.1). - connect (111: Connection refused)\nE: Some index files failed to download.\n",
			"apt-get update: Failed to fetch http://m.example/InRelease Could not connect to m.example:80 (192.0.2.1). - connect (111: Connection refused); " +
				"check the network and its proxy, or set TEMPER_DEBIAN_MIRROR to a mirror that answers",
			exit.NoNetwork,
		},
		{
			"E: Failed to fetch http://m.example/InRelease  Temporary failure resolving 'm.example'\n",
			"apt-get update: Failed to fetch http://m.example/InRelease Temporary failure resolving 'm.example'; " +
				"check the network and its proxy, or set TEMPER_DEBIAN_MIRROR to a mirror that answers",
			exit.NoNetwork,
		},
		{
			"E: You don't have enough free space in /cache/.\n",
			"apt-get update: You don't have enough free space in /cache/.; make room, or set TEMPER_CACHE to a folder on another disk",
			exit.NoDisk,
		},
		{
			"dpkg-deb: error: failed to write: No space left on device\n",
			"apt-get update: dpkg-deb: error: failed to write: No space left on device; make room, or set TEMPER_CACHE to a folder on another disk",
			exit.NoDisk,
		},
		{"E: The repository is not signed.\n", "apt-get update: The repository is not signed.", exit.Failed},
		{"", "apt-get update: exit status 100", exit.Failed},
	} {
		err := explainApt("apt-get update", c.stderr, errors.New("exit status 100"))
		if err.Error() != c.want || exit.StatusOf(err) != c.status {
			t.Errorf("%q:\n got %q, status %d\nwant %q, status %d", c.stderr, err, exit.StatusOf(err), c.want, c.status)
		}
	}
}
