#!/bin/bash
# Signs files of a release, each as those who install it verify it: sign.sh KEY FILE...
# KEY names a secret key of gpg: a fingerprint, or a mail address. Only gpg sees the key itself, so that it may be on a
# token, and gpg's agent asks for its passphrase. A package has its signature inside; any other file, beside it.
set -euo pipefail

fail() {
	echo "sign: $1" >&2
	exit 1
}

readonly key=$1
shift
# Before any file is signed, so that a release is signed whole or not at all.
for tool in gpg ar rpmsign; do
	command -v "$tool" >/dev/null || fail "there is no $tool: run 'make deps'"
done
gpg --batch --list-secret-keys "$key" >/dev/null 2>&1 || fail "gpg has no secret key '$key': 'gpg --list-secret-keys' shows those it has"

gpg_sign() { gpg --batch --yes --local-user "$key" "$@"; }

# As debsigs does: a member of the archive that signs those before it.
sign_deb() {
	local dir
	dir=$(mktemp -d)
	ar p "$1" $(ar t "$1" | grep -v '^_gpg') | gpg_sign --detach-sign --output "$dir/_gpgorigin"
	ar r "$1" "$dir/_gpgorigin"
	rm -r "$dir"
}

# rpm has another place for gpg than distributions have.
sign_rpm() { rpmsign --define "_gpg_name $key" --define "__gpg $(command -v gpg)" --addsign "$1" >/dev/null; }

# As 'helm package --sign' does, but that wants the secret key in a file: what the chart is, and the sum of its archive.
sign_chart() {
	local sum
	sum=$(sha256sum "$1" | cut -d' ' -f1)
	{
		tar -xzOf "$1" temper/Chart.yaml
		printf '\n...\nfiles:\n  %s: sha256:%s\n' "${1##*/}" "$sum"
	} | gpg_sign --clear-sign --output "$1.prov"
}

for file; do
	case $file in
	*.deb) sign_deb "$file" ;;
	*.rpm) sign_rpm "$file" ;;
	*.tgz) sign_chart "$file" ;;
	*) gpg_sign --armor --detach-sign --output "$file.asc" "$file" ;;
	esac
done
