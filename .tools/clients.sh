#!/usr/bin/env bash
# Checks the OpenAPI document as its readers use it: a linter finds nothing, no
# change breaks a client of the released document, and generators make clients
# from it without a warning, which compile: Python's only if java is the first
# argument. Then it runs the tests of the
# packages in pkg/client against a service of their own, and has dlt and Airbyte
# copy its records as the guide says, with java also while they and the service are
# killed, and libraries of OAuth 2.0 ask its owner.
# Everything lies in .build/clients.
set -euo pipefail
cd "$(dirname "$0")/.."
document=$PWD/pkg/api/docs/openapi.json
released=$PWD/pkg/api/docs/released.json
settings=$PWD/.tools/clients
out=$PWD/.build/clients
generator=7.20.0 # of org.openapitools:openapi-generator-cli
tool() { go tool -modfile="$settings/../go.mod" "$@"; }

# quiet runs a command and fails when it fails or prints a line that says so.
quiet() { # pattern of warnings, command
	local pattern=$1 log=$out/log
	shift
	if ! "$@" >"$log" 2>&1 || grep -E "$pattern" "$log"; then
		cat "$log"
		echo "clients: failed or warned: $*" >&2
		exit 1
	fi
}

mkdir -p "$out/node" "$out/go"
cp "$settings"/package*.json "$out/node/"
(cd "$out/node" && npm ci --no-audit --no-fund --silent)
node=$out/node/node_modules/.bin

echo "lint"
quiet '\[[0-9]+\] .*openapi.json' "$node/redocly" lint --config "$settings/redocly.yaml" "$document"

# What an event may lose or get is what an answer may: its objects and its
# envelope are the schemas of answers. As the body of a request it would be
# judged the other way round, so it is left out here.
without_bodies() { # document, copy
	python3 -c 'import json, sys
document = json.load(open(sys.argv[1]))
for event in document["webhooks"].values():
    del event["post"]["requestBody"]
json.dump(document, open(sys.argv[2], "w"))' "$@"
}

echo "no breaking change"
without_bodies "$released" "$out/released.json"
without_bodies "$document" "$out/current.json"
tool oasdiff breaking --fail-on ERR "$out/released.json" "$out/current.json"

echo "Go: oapi-codegen"
cp "$settings"/go.* "$out/go/"
(cd "$out/go" && quiet . tool oapi-codegen -config "$settings/oapi-codegen.yaml" "$document" && go build ./...)

echo "TypeScript: openapi-typescript"
quiet '[Ww]arn|⚠' make --no-print-directory pkg/client/typescript/dist/index.js

python_generator() {
	echo "Python: openapi-generator"
	local jar=$out/openapi-generator-cli-$generator.jar
	[ -f "$jar" ] || mvn -q -B org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy \
		-Dartifact=org.openapitools:openapi-generator-cli:$generator -DoutputDirectory="$out"
	# The generator resolves the document's relative server only when it reads the
	# document by HTTP, as an integrator does.
	sed 's|"url": "\."|"url": "https://api.example.com"|' "$document" >"$out/openapi.json"
	rm -rf "$out/python"
	java -jar "$jar" generate -i "$out/openapi.json" -g python -o "$out/python" \
		--model-name-mappings from=Start >"$out/log" 2>&1 || { cat "$out/log"; exit 1; }
	# Two warnings are of the generator itself, whatever the document: that it takes
	# 3.1, and a look-up of its own.
	if grep WARN "$out/log" | grep -vE '3\.1 support is still in beta|Failed to get the schema name: null'; then exit 1; fi
	# It makes an API of the webhooks, too, which is no Python, and which nothing imports.
	rm "$out/python/openapi_client/api/events_api.py"
	python3 -m compileall -q "$out/python"
	[ -d "$out/venv" ] || python3 -m venv "$out/venv"
	"$out/venv/bin/pip" install -q --disable-pip-version-check "$out/python"
	(cd "$out" && venv/bin/python -W error -c 'import openapi_client
print(len(openapi_client.__all__), "names")')
}
[ "${1:-}" != java ] || python_generator

echo "pkg/client"
(cd pkg/client/go/generate && quiet . tool oapi-codegen -config config.yaml -o "$out/client.gen.go" "$document")
cmp "$out/client.gen.go" pkg/client/go/client.gen.go || { echo "clients: run go generate in pkg/client/go" >&2; exit 1; }
. .tools/service.sh
serve "$out/run"
export COMMERCE_RUN=$out/run/run.json
make --no-print-directory test-clients

echo "The guide's programs: dlt, Airbyte"
tools=$out/tools
guide=pkg/api/docs/guides/tools.md
mkdir -p "$tools"
for program in "python copy_dlt.py" "python copy_lists.py" "yaml manifest.yaml"; do
	sed -n "/^\`\`\`$program\$/,/^\`\`\`\$/p" "$guide" | sed '1d;$d' >"$tools/${program#* }"
done
[ -d "$tools/venv" ] || python3 -m venv "$tools/venv"
"$tools/venv/bin/pip" install -q --disable-pip-version-check 'dlt[duckdb]==1.31.0' airbyte-cdk==7.39.1 authlib==1.9.10
"$tools/venv/bin/python" .tools/clients/tools.py "$COMMERCE_RUN" "$tools"
# In a shell of its own, with which its service ends.
[ "${1:-}" != java ] || (serve "$out/killed" --processes && "$tools/venv/bin/python" .tools/clients/keep.py "$out/killed/run.json" "$tools")

echo "OAuth 2.0: openid-client, Authlib"
cp "$settings/authorize.mjs" "$out/node/" # beside what it imports
node "$out/node/authorize.mjs" "$COMMERCE_RUN"
"$tools/venv/bin/python" .tools/clients/authorize.py "$COMMERCE_RUN"
