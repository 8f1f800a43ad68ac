#!/bin/bash
# Builds a kernel from the distribution's source into the lab's cache: upstream.sh SERIES [VARIANT]. For series that the
# distribution builds without sched_ext, and for variants that it does not build: lab/kernels/VARIANT.config. The lab knows
# one as VARIANT-SERIES. Quick when it is there; else it takes a quarter of an hour and 3 GB on two CPUs.
set -euo pipefail

readonly series=${1:?usage: upstream.sh SERIES [VARIANT], such as 6.12}
readonly variant=${2:-}
readonly cache=${TEMPER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/temper}
readonly configs=("$PWD/lab/kernels/upstream.config" ${variant:+"$PWD/lab/kernels/$variant.config"})

fail() {
	echo "upstream: $1" >&2
	exit 1
}

built() { ls "$cache/kernels" 2>/dev/null | grep -x "${variant:+$variant-}${series//./\\.}\..*-temper"; }

if release=$(built); then
	echo "$release is there"
	exit
fi
for config in "${configs[@]}"; do
	[ -f "$config" ] || fail "no $config; run it from the top of the project"
done
apt-get -qq install --yes --no-install-recommends bc bison cpio dwarves flex libelf-dev libssl-dev xz-utils >/dev/null ||
	fail "what a kernel's build needs cannot be installed; run it as root"
mkdir -p "$cache"
work=$(mktemp -d "$cache/build.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"
# From the host's own archive, or from one of the lab's.
for apt in "" "$cache"/apt/*/apt.conf; do
	APT_CONFIG=$apt apt-get -qq -o APT::Sandbox::User=root download "linux-source-$series" 2>/dev/null && break
done
ls linux-source-*.deb >/dev/null 2>&1 || fail "the archive has no linux-source-$series"
dpkg-deb -x linux-source-*.deb .
tar -xJf usr/src/linux-source-"$series".tar.xz
cd "linux-source-$series"
make -s x86_64_defconfig
scripts/kconfig/merge_config.sh -m .config "${configs[@]}" >merged
make -s olddefconfig
grep -q '^CONFIG_SCHED_CLASS_EXT=y' .config || fail "the source of $series has no sched_ext, or pahole is too old for its type data"
echo "building kernel $series; the log is $work/log"
make -s -j"$(nproc)" bzImage >"$work/log" 2>&1 || { tail -n 20 "$work/log" >&2; fail "the kernel does not build"; }
release=${variant:+$variant-}$(make -s kernelrelease)
mkdir -p "$work/ready" "$cache/kernels"
cp arch/x86/boot/bzImage "$work/ready/vmlinuz"
cp .config "$work/ready/config"
mv "$work/ready" "$cache/kernels/$release" # as a whole, so that a folder that exists is complete
echo "$release is built"
