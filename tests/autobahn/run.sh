#!/usr/bin/env bash
# The Autobahn cases (without compression, groups 12 and 13) against the echo example.
#
# Needs Rust, Python 3.10 or later with venv, and PyPI for `kosoku`, which runs the cases of the Autobahn test suite on
# Python 3. Exits 0 when all cases ran and none failed. Reports are in target/autobahn/reports.
set -euo pipefail
cd "$(dirname "$0")/../.."

work="${CARGO_TARGET_DIR:-target}/autobahn"
cases_expected=301
mkdir -p "$work"

if [ ! -x "$work/venv/bin/kosoku" ]; then
    python3 -m venv "$work/venv"
    "$work/venv/bin/pip" install --quiet --disable-pip-version-check "kosoku==0.1.0"
fi

cargo build --quiet --release --example echo
"${CARGO_TARGET_DIR:-target}/release/examples/echo" 127.0.0.1:0 >"$work/echo.log" 2>&1 &
echo_pid=$!
trap 'kill "$echo_pid" 2>/dev/null || true' EXIT

address=
for _ in $(seq 100); do
    address=$(sed -n 's/^listening on //p' "$work/echo.log")
    [ -n "$address" ] && break
    kill -0 "$echo_pid" 2>/dev/null || { cat "$work/echo.log" >&2; exit 1; }
    sleep 0.05
done
[ -n "$address" ] || { echo "autobahn: the echo server did not say where it listens" >&2; exit 1; }

rm -rf "$work/reports"
# The verdict is read from the report below, so that cases that did not run count too.
timeout 900 "$work/venv/bin/kosoku" "$address" --exclude '12.*' --exclude '13.*' --outdir "$work/reports" \
    >"$work/kosoku.log" 2>&1 || true
[ -f "$work/reports/index.json" ] || { cat "$work/kosoku.log" >&2; exit 1; }

"$work/venv/bin/python" - "$work/reports/index.json" "$cases_expected" <<'PYTHON'
import json, sys
from collections import Counter

path, expected = sys.argv[1], int(sys.argv[2])
with open(path) as file:
    cases = {case: result for agent in json.load(file).values() for case, result in agent.items()}
good = {"OK", "NON-STRICT", "INFORMATIONAL"}
bad = [
    (case, result["behavior"], result["behaviorClose"])
    for case, result in sorted(cases.items())
    if result["behavior"] not in good or result["behaviorClose"] not in good
]
counts = Counter(result["behavior"] for result in cases.values())
for case, result in sorted(cases.items()):
    if result["behavior"] in good - {"OK"}:
        print(f"{result['behavior'].lower()}: {case}")
for case, behavior, close in bad:
    print(f"failed: {case} ({behavior}, close {close})")
parts = ", ".join(f"{counts[kind]} {kind.lower()}" for kind in ("OK", "NON-STRICT", "INFORMATIONAL"))
print(f"autobahn: {len(cases)} cases, {parts}, {len(bad)} failed")
if len(cases) != expected:
    print(f"autobahn: {expected} cases were expected")
sys.exit(1 if bad or len(cases) != expected else 0)
PYTHON
