#!/usr/bin/env bash
# Runs the service with demo data, and asks it what its OpenAPI document permits
# and what it does not: with an API key, as an application and as users, each
# at once on a service of its own.
set -euo pipefail
cd "$(dirname "$0")/../.."
mkdir -p .build/conform
. .tools/service.sh

of() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$CONFORM_RUN" "$1"; }
user() { .build/commerce token --data "$folder" --organization "$(of organizationId)" --roles OWNER; }

ask() ( # who, arguments of Schemathesis
	export CONFORM_AS=$1 CONFORM_RUN=.build/conform/$1/run.json CONFORM_USERS=""
	folder=.build/conform/$1
	serve "$folder"
	.build/commerce application set "$(of applicationId)" --data "$folder" --rate-limit 1000000
	[ "$1" != user ] || CONFORM_USERS=$(for _ in $(seq 20); do user; done)
	.build/schemathesis/bin/st --config-file .tools/conform/schemathesis.toml run "$(of baseUrl)/openapi.json" "${@:2}"
)

ask key --include-path-regex '^/api/' >.build/conform/key.report 2>&1 &
ask application --include-path-regex '^/(api|developers/webhooks)/' >.build/conform/application.report 2>&1 &
ask user >.build/conform/user.report 2>&1 &
failed=0
for job in $(jobs -p); do
	wait "$job" || failed=1
done
tail -n +1 .build/conform/{key,application,user}.report
exit $failed
