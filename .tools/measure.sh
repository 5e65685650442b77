#!/usr/bin/env bash
# Writes pkg/lab/MEASURED.md: what the lab and the benchmarks print on this
# machine. Leave the machine alone meanwhile; it takes about 25 minutes.
set -euo pipefail
cd "$(dirname "$0")/.."
page=pkg/lab/MEASURED.md

bench() { # package, benchmarks, further flags
	printf '## `go test %s -run xxx -bench %s%s`\n\n```\n' "$1" "'$2'" "${3:+ $3}" >>"$page"
	# shellcheck disable=SC2086
	go test "$1" -run xxx -bench "$2" -benchmem ${3:-} | grep -E '^(cpu|Benchmark)|^ok' | tee -a "$page"
	printf '```\n\n' >>"$page"
}

go build -o .build/lab ./pkg/cmd/lab
cat >"$page" <<'HEAD'
# Measured

`make measured` writes this page. Everything runs on one machine, the client, the receivers and what stands in for AWS
too. Figures of CPU are of one process over its whole time; units are those that the table answers.

HEAD
.build/lab bench --markdown "$page"
.build/lab bench webhooks --isolation --markdown "$page"
bench ./pkg/delivery/worker Worker
bench ./pkg/api/records Request
bench ./pkg/lists/columnar 'Query|Apply/100000$|Memory|SegmentLoad|SegmentEncode|MillionOrders' '-benchtime 300ms'
bench ./pkg/index 'ColdList|WarmList|WriteUnits' '-benchtime 1x'
bench ./pkg/delivery/sweeper 'Recovery$' '-benchtime 1x'
bench ./pkg/local/queueserver . '-benchtime 1s'
bench ./pkg/local/tableserver PutsWithStream '-benchtime 50000x'
