#!/bin/bash
# Build the Kubernetes that tests run against, from source: kubernetes.sh FOLDER
#
# tools/kubernetes/go.mod says of which version. What is built already is not built again.
set -euo pipefail

readonly folder=$(realpath -m "${1:?usage: scripts/kubernetes.sh FOLDER}")
cd "$(dirname "$0")/../tools/kubernetes"

version=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
IFS=. read -r major minor _ <<<"${version#v}"
# Without these it says v0.0.0-master, which clients that look at the version refuse.
readonly package=k8s.io/component-base/version
readonly flags="-s -w -X $package.gitVersion=$version -X $package.gitMajor=$major -X $package.gitMinor=$minor"

mkdir -p "$folder"
go build -ldflags "$flags" -o "$folder/etcd" go.etcd.io/etcd/server/v3
go build -ldflags "$flags" -o "$folder/kube-apiserver" k8s.io/kubernetes/cmd/kube-apiserver
