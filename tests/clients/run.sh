#!/usr/bin/env bash
# Runs the clients nobody here wrote against a server that is up: run.sh BASE_URL SECRET_FILE
# Installs their libraries under target/clients, once.
set -euo pipefail

if [ $# -ne 2 ]; then
    echo "usage: tests/clients/run.sh BASE_URL SECRET_FILE" >&2
    exit 2
fi
base=$1
secret=$(realpath "$2")
here=$(cd "$(dirname "$0")" && pwd)
target=$(cd "$here/../.." && pwd)/target/clients

venv=$target/venv
wanted=$here/python/requirements.txt
if ! cmp -s "$wanted" "$venv/requirements.txt"; then
    rm -rf "$venv"
    mkdir -p "$target"
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check --requirement "$wanted"
    cp "$wanted" "$venv/requirements.txt"
fi

modules=$target/node
if ! cmp -s "$here/node/package.json" "$modules/node_modules/package.json"; then
    rm -rf "$modules"
    mkdir -p "$modules"
    cp "$here/node/package.json" "$modules/"
    (cd "$modules" && npm install --silent --no-audit --no-fund --no-package-lock)
    cp "$modules/package.json" "$modules/node_modules/package.json"
fi

PYTHONDONTWRITEBYTECODE=1 "$venv/bin/python" "$here/python/check.py" "$base" --secret-file "$secret"
NODE_PATH=$modules/node_modules node "$here/node/check.cjs" "$base" "$secret"
