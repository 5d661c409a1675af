#!/usr/bin/env bash
# The demo page in Chromium against the real server, which is killed and restarted meanwhile; and the report of a load run.
#
# Needs Debian's chromium, Node 18 or later and npm. Starts the server itself, on a free port and in a folder of its own.
# Screenshots are left in target/screenshots. THRONG_BIN names another binary, CHROMIUM another browser.
set -euo pipefail
cd "$(dirname "$0")/../.."

target="${CARGO_TARGET_DIR:-target}"
mkdir -p "$target/browser" "$target/screenshots"
target="$(realpath "$target")"

if [ -z "${THRONG_BIN:-}" ]; then
    cargo build --quiet --release --package throng
    THRONG_BIN="$target/release/throng"
fi

# The modules are installed under target/, so that the tree stays clean; only when what is wanted has changed.
if ! cmp --silent tests/browser/package-lock.json "$target/browser/installed-lock.json"; then
    cp tests/browser/package.json tests/browser/package-lock.json "$target/browser/"
    npm ci --prefix "$target/browser" --ignore-scripts --no-audit --no-fund
    cp tests/browser/package-lock.json "$target/browser/installed-lock.json"
fi

export THRONG_BIN
export BROWSER_TARGET="$target"
export CHROMIUM="${CHROMIUM:-/usr/bin/chromium}"
exec node --test tests/browser/page.test.mjs tests/browser/report.test.mjs
