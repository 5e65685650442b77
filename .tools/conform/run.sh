#!/usr/bin/env bash
# Runs the service with demo data, and asks it what its OpenAPI document permits
# and what it does not: with an API key, as an application and as users.
set -euo pipefail
cd "$(dirname "$0")/../.."
folder=.build/conform
port=${PORT:-3400}

.build/commerce run --data "$folder" --fresh --addr "127.0.0.1:$port" >"$folder.log" 2>&1 &
service=$!
trap 'kill -INT $service 2>/dev/null; wait $service || true' EXIT
export CONFORM_RUN=$folder/run.json
until [ -f "$CONFORM_RUN" ]; do
	kill -0 $service 2>/dev/null || { cat "$folder.log"; exit 1; }
	sleep 0.5
done
of() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$CONFORM_RUN" "$1"; }
user() { .build/commerce token --data "$folder" --organization "$(of organizationId)" --roles OWNER; }

.build/commerce application set "$(of applicationId)" --data "$folder" --rate-limit 1000000
failed=0
ask() {
	echo "== as $1"
	CONFORM_AS=$1 .build/schemathesis/bin/st --config-file .tools/conform/schemathesis.toml run "$(of baseUrl)/openapi.json" "${@:2}" || failed=1
}
ask key --include-path-regex '^/api/'
ask application --include-path-regex '^/(api|developers/webhooks)/'
CONFORM_USERS=$(for _ in $(seq 20); do user; done) ask user
exit $failed
