#!/bin/bash
# Builds the sched_ext schedulers that Temper is compared with into a folder: peers.sh FOLDER. Quick when all is there.
set -euo pipefail

readonly folder=${1:?usage: peers.sh FOLDER}
readonly version=1.1.4 # of scx_lavd and scx_layered, which are released together
readonly series=7.2    # of the kernel whose examples have scx_simple; its programs load on older kernels
readonly suite=trixie-backports

fail() {
	echo "peers: $1" >&2
	exit 1
}

# An example of the kernel's own source. It is built against the types of a kernel of that series.
build_simple() {
	local work source
	work=$(mktemp -d)
	trap 'rm -rf "$work"' RETURN
	bin/temper-lab kernels >/dev/null # reads the archive's index
	(cd "$work" && APT_CONFIG="${TEMPER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/temper}/apt/$suite/apt.conf" \
		apt-get -qq download "linux-source-$series") || fail "$suite has no linux-source-$series; set series in $0 to one that it has"
	dpkg-deb -x "$work"/linux-source-*.deb "$work"
	source=linux-source-$series
	tar -C "$work" -xJf "$work/usr/src/$source.tar.xz" "$source"/{Makefile,include,kernel/bpf,scripts,tools}
	# As text: what a guest's command prints reaches the host as text.
	bin/temper-lab exec --kernel "$series" -- base64 /sys/kernel/btf/vmlinux | base64 -d >"$work/types"
	make -s -C "$work/$source/tools/sched_ext" CLANG=clang-19 LLC=llc-19 LLVM_STRIP=llvm-strip-19 \
		VMLINUX_BTF="$work/types" scx_simple >"$work/log" 2>&1 || { cat "$work/log" >&2; fail "scx_simple does not build"; }
	install "$work/$source/tools/sched_ext/build/bin/scx_simple" "$folder/bin/"
}

command -v cargo >/dev/null || fail "cargo is not installed; install Rust 1.91 or newer and put it on the PATH"
mkdir -p "$folder/bin"
for peer in scx_lavd scx_layered; do
	# It builds BPF programs, for which Debian has several compilers.
	BPF_CLANG=clang-19 cargo install --quiet --locked --root "$folder" --version "$version" "$peer"
done
[ -x "$folder/bin/scx_simple" ] || build_simple
