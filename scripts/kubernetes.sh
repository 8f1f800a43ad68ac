#!/bin/bash
# Build what of Kubernetes the tests run against, from source: kubernetes.sh FOLDER PROGRAM...
#
# The go.mod of tools/kubernetes, tools/node and tools/chart say of which versions. What is built already is not built again.
set -euo pipefail

fail() {
	echo "kubernetes: $1" >&2
	exit 1
}

(($# > 1)) || fail "usage: scripts/kubernetes.sh FOLDER PROGRAM..."
readonly folder=$(realpath -m "$1")
shift
cd "$(dirname "$0")/../tools"
mkdir -p "$folder"

# of_kubernetes PROGRAM PACKAGE
of_kubernetes() (
	cd kubernetes
	version=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
	IFS=. read -r major minor _ <<<"${version#v}"
	# Without these it says v0.0.0-master, which clients that look at the version refuse.
	stamp=k8s.io/component-base/version
	CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X $stamp.gitVersion=$version -X $stamp.gitMajor=$major -X $stamp.gitMinor=$minor" -o "$folder/$1" "$2"
)

# of MODULE PROGRAM PACKAGE
of() (
	cd "$1"
	CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o "$folder/$2" "$3"
)

# With seccomp, which the kubelet asks of every sandbox, and which is C; statically, since the node has no C library.
runc() (
	cd node
	[ -f /usr/include/seccomp.h ] || fail "no seccomp.h; run 'make deps', or install libseccomp-dev"
	CGO_ENABLED=1 go build -tags 'netgo osusergo seccomp' -ldflags '-s -w -extldflags -static' -o "$folder/runc" github.com/opencontainers/runc
)

for program; do
	case $program in
	etcd) of_kubernetes etcd go.etcd.io/etcd/server/v3 ;;
	kube-apiserver | kube-scheduler | kube-controller-manager | kubelet | kubectl) of_kubernetes "$program" "k8s.io/kubernetes/cmd/$program" ;;
	containerd | containerd-shim-runc-v2 | ctr) of node "$program" "github.com/containerd/containerd/v2/cmd/$program" ;;
	ptp | loopback) of node "$program" "github.com/containernetworking/plugins/plugins/main/$program" ;;
	host-local) of node "$program" "github.com/containernetworking/plugins/plugins/ipam/$program" ;;
	runc) runc ;;
	helm) of chart helm helm.sh/helm/v4/cmd/helm ;;
	*) fail "no program $program is known" ;;
	esac
done
