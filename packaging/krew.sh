#!/bin/bash
# Writes krew's manifest of 'kubectl temper': krew.sh VERSION URL ARCHIVE...
# An archive is called kubectl-temper_VERSION_OS-ARCH.tar.gz, and found at URL.
set -euo pipefail

readonly version=$1 url=$2
shift 2
cat <<END
apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: temper
spec:
  version: v$version
  homepage: https://temper.dev/temper
  shortDescription: See what Temper does to a cluster's pods
  description: |
    Says which tier each pod has and why, which nodes enforce it, and what
    keeps a node from it; leaves a node to the kernel's own scheduler, and
    collects what a report needs.
  platforms:
END
for archive; do
	platform=${archive##*_}
	platform=${platform%.tar.gz}
	cat <<END
  - selector:
      matchLabels:
        os: ${platform%-*}
        arch: ${platform#*-}
    uri: $url/${archive##*/}
    sha256: $(sha256sum "$archive" | cut -d' ' -f1)
    bin: kubectl-temper
    files:
    - from: kubectl-temper
      to: .
    - from: LICENSE
      to: .
END
done
