#!/bin/bash
# Builds a kernel from the distribution's source into the lab's cache: upstream.sh SERIES. For series that the
# distribution builds without sched_ext. Quick when it is there; else it takes a quarter of an hour and 3 GB on two CPUs.
set -euo pipefail

readonly series=${1:?usage: upstream.sh SERIES, such as 6.12}
readonly cache=${TEMPER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/temper}
readonly config=$PWD/lab/kernels/upstream.config

fail() {
	echo "upstream: $1" >&2
	exit 1
}

built() { ls "$cache/kernels" 2>/dev/null | grep -x "${series//./\\.}\..*-temper"; }

if release=$(built); then
	echo "$release is there"
	exit
fi
[ -f "$config" ] || fail "no $config; run it from the top of the project"
apt-get -qq install --yes --no-install-recommends bc bison cpio dwarves flex libelf-dev libssl-dev xz-utils >/dev/null ||
	fail "what a kernel's build needs cannot be installed; run it as root"
mkdir -p "$cache"
work=$(mktemp -d "$cache/build.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"
apt-get -qq -o APT::Sandbox::User=root download "linux-source-$series" || fail "the archive has no linux-source-$series"
dpkg-deb -x linux-source-*.deb .
tar -xJf usr/src/linux-source-"$series".tar.xz
cd "linux-source-$series"
make -s x86_64_defconfig
scripts/kconfig/merge_config.sh -m .config "$config" >merged
make -s olddefconfig
grep -q '^CONFIG_SCHED_CLASS_EXT=y' .config || fail "the source of $series has no sched_ext, or pahole is too old for its type data"
echo "building kernel $series; the log is $work/log"
make -s -j"$(nproc)" bzImage >"$work/log" 2>&1 || { tail -n 20 "$work/log" >&2; fail "the kernel does not build"; }
release=$(make -s kernelrelease)
mkdir -p "$work/ready" "$cache/kernels"
cp arch/x86/boot/bzImage "$work/ready/vmlinuz"
cp .config "$work/ready/config"
mv "$work/ready" "$cache/kernels/$release" # as a whole, so that a folder that exists is complete
echo "$release is built"
