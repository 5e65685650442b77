#!/usr/bin/env bash
# Runs the Model Context Protocol's own suite against the service with demo data. make
# test-mcp builds the one and installs the other.
set -euo pipefail
cd "$(dirname "$0")/../.."
. .tools/service.sh
serve .build/mcp/data
node .tools/mcp/run.mjs .build/mcp/data/run.json .build/mcp/node_modules/.bin/conformance .tools/mcp/expected.yml
