#!/usr/bin/env bash
# Installs mcptest from the archive of a release, after checking its SHA-256.
#
# MCPTEST_REPOSITORY  address of the repository, such as https://github.com/OWNER/mcptest
# MCPTEST_VERSION     version, such as 0.1.0
# MCPTEST_BIN         folder for the program (default: ~/.mcptest/bin)
# MCPTEST_DOWNLOADS   address of the folder of the archives (default: that of the release)
set -euo pipefail

fail() {
  echo "mcptest: $*" >&2
  exit 2
}

bin=${MCPTEST_BIN:-$HOME/.mcptest/bin}
version=${MCPTEST_VERSION:?the version to install}
version=${version#v}

if [ -x "$bin/mcptest" ] && [ "$("$bin/mcptest" --version)" = "mcptest $version" ]; then
  echo "mcptest $version is in $bin"
else
  case "$(uname -s)-$(uname -m)" in
    Linux-x86_64) target=x86_64-unknown-linux-musl ;;
    Linux-aarch64 | Linux-arm64) target=aarch64-unknown-linux-musl ;;
    Darwin-arm64) target=aarch64-apple-darwin ;;
    Darwin-x86_64) target=x86_64-apple-darwin ;;
    *) fail "no program for $(uname -s) $(uname -m); on Windows, use WSL" ;;
  esac
  name=mcptest-$version-$target
  downloads=${MCPTEST_DOWNLOADS:-${MCPTEST_REPOSITORY:?the repository to download from}/releases/download/v$version}
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  for file in "$name.tar.gz" SHA256SUMS; do
    curl --fail --silent --show-error --location --retry 3 --output "$folder/$file" "$downloads/$file" ||
      fail "cannot download $downloads/$file"
  done
  (
    cd "$folder"
    grep -F "  $name.tar.gz" SHA256SUMS > expected || fail "SHA256SUMS does not list $name.tar.gz"
    if command -v sha256sum > /dev/null; then
      sha256sum --check --quiet expected
    else
      shasum --algorithm 256 --check --quiet expected
    fi
  ) || fail "$name.tar.gz does not have the checksum of the release"
  tar -xzf "$folder/$name.tar.gz" -C "$folder"
  mkdir -p "$bin"
  mv "$folder/$name/mcptest" "$bin/mcptest"
  echo "installed mcptest $version in $bin"
fi

if [ -n "${GITHUB_PATH:-}" ]; then
  echo "$bin" >> "$GITHUB_PATH"
fi
