# Sourced by scripts that need the service with demo data.

# serve starts the service on a free port, with its data in the folder and its
# output beside it, and returns when the folder's run.json is there. The service
# ends with the shell.
serve() { # folder, further flags
	rm -f "$1/run.json"
	.build/commerce run --data "$1" --fresh --addr 127.0.0.1:0 "${@:2}" >"$1.log" 2>&1 &
	service=$!
	trap 'kill -INT $service 2>/dev/null; wait $service || true' EXIT
	until [ -f "$1/run.json" ]; do
		kill -0 $service 2>/dev/null || { cat "$1.log"; exit 1; }
		sleep 0.5
	done
}
