#!/usr/bin/env bash
# Runs the tests about table and queues on AWS's DynamoDB Local and on ElasticMQ, in place of the servers that the tests
# start. Needs Maven and Java 17, and ends both servers with itself.
set -euo pipefail
cd "$(dirname "$0")/.."
out=$PWD/.build/official
# shellcheck disable=SC2206 # words of a list
packages=(${PKG:-./pkg/dynamo ./pkg/queue ./pkg/ingest ./pkg/delivery/dispatcher ./pkg/delivery/worker})

# What cannot hold there, each with the reason.
exceptions=(
	# It bounds the time of its rounds by the speed of the table, which these servers do not have.
	TestLargeBatchGoesInRoundsAsFarAsTimeAllows
)

fetch() { # description, folder
	[ -d "$2" ] && return
	mvn -q -B -f "$1" org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies \
		-DoutputDirectory="$2.new" -DincludeScope=runtime
	mv "$2.new" "$2"
}

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

answers() { # port
	for _ in $(seq 300); do
		if (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; then return; fi
		sleep 0.2
	done
	cat "$out"/*.log >&2
	return 1
}

mkdir -p "$out"
fetch pkg/local/tableserver/dynamodb-local.xml "$out/dynamodb-local"
fetch .tools/elasticmq.xml "$out/elasticmq"
trap 'kill $(jobs -p) 2>/dev/null; wait' EXIT
java="${JAVA_HOME:+$JAVA_HOME/bin/}java"
table=$(free_port) queues=$(free_port)
"$java" -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Dsqlite4java.library.path="$out/dynamodb-local" -cp "$out/dynamodb-local/*" \
	com.amazonaws.services.dynamodbv2.local.main.ServerRunner -inMemory -sharedDb -disableTelemetry -port "$table" \
	>"$out/dynamodb-local.log" 2>&1 &
cat >"$out/elasticmq.conf" <<CONF
include classpath("application.conf")
node-address { host = 127.0.0.1, port = $queues, protocol = http }
rest-sqs { bind-hostname = 127.0.0.1, bind-port = $queues }
rest-stats { enabled = false }
CONF
"$java" -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Dconfig.file="$out/elasticmq.conf" -cp "$out/elasticmq/*" org.elasticmq.server.Main \
	>"$out/elasticmq.log" 2>&1 &
answers "$table"
answers "$queues"
AWS_ENDPOINT_URL_DYNAMODB=http://127.0.0.1:$table AWS_ENDPOINT_URL_SQS=http://127.0.0.1:$queues \
	go test -count=1 -p 1 -timeout 10m -skip "$(IFS='|'; echo "${exceptions[*]}")" "${packages[@]}"
