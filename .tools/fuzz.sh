#!/usr/bin/env bash
# Fuzzes every target of a folder for a while. What breaks one is written to its
# testdata, from where every go test tries it again.
set -euo pipefail
cd "$(dirname "$0")/.."
grep -rHoE --include='*_test.go' '^func Fuzz\w+' "${2%/...}" | sort | while IFS=: read -r file target; do
	target=${target#func }
	echo "== $(dirname "$file") $target"
	# Inputs are hardly made smaller: requests to servers cover other lines each time.
	go test "./$(dirname "$file")" -run '^$' -fuzz "^$target\$" -fuzztime "$1" -fuzzminimizetime 5x </dev/null
done
