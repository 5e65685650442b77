"""python tools.py RUN_JSON FOLDER: runs the guide's dlt program and Airbyte manifest, which lie in the folder, and
compares the copies with the lists."""
import json, os, shutil, subprocess, sys, urllib.request

import duckdb

run, folder = json.load(open(sys.argv[1])), sys.argv[2]
kinds = {"product": "products", "category": "categories", "order": "orders", "customer": "customers", "invoice": "invoices"}


def listed(name):
    request = urllib.request.Request(f"{run['baseUrl']}/api/{name}?limit=100&orderBy=id", headers={"X-API-Key": run["apiKey"]})
    with urllib.request.urlopen(request) as answer:
        return sorted(record["id"] for record in json.load(answer)["data"])


work = folder + "/copy"
shutil.rmtree(work, ignore_errors=True)
os.makedirs(work)
env = os.environ | {"API": run["baseUrl"], "KEY": run["apiKey"], "DLT_DATA_DIR": work, "RUNTIME__DLTHUB_TELEMETRY": "false", "RUNTIME__LOG_LEVEL": "ERROR"}
for _ in range(2):  # everything, then what changed
    subprocess.run([sys.executable, folder + "/copy_dlt.py"], cwd=work, env=env, check=True, stdout=subprocess.DEVNULL)
db = duckdb.connect(work + "/commerce.duckdb", read_only=True)
for kind, name in kinds.items():
    copied = sorted(row[0] for row in db.execute(f'SELECT id FROM copy."{kind}"').fetchall())
    assert copied == listed(name), f"dlt: {name}: {copied}"


def airbyte(command, *more):
    answer = subprocess.run([os.path.dirname(sys.executable) + "/source-declarative-manifest", command, "--config", work + "/config.json",
                             "--manifest-path", folder + "/manifest.yaml", *more], check=True, text=True, stdout=subprocess.PIPE)
    return [json.loads(line) for line in answer.stdout.splitlines() if line.startswith("{")]


def kept(name, value):
    with open(f"{work}/{name}.json", "w") as file:
        json.dump(value, file)
    return f"{work}/{name}.json"


kept("config", {"api": run["baseUrl"], "key": run["apiKey"]})
streams = next(message["catalog"]["streams"] for message in airbyte("discover") if message["type"] == "CATALOG")
catalog = kept("catalog", {"streams": [{"stream": s, "sync_mode": "incremental", "destination_sync_mode": "append_dedup"} for s in streams]})
copies, states = {s["name"]: set() for s in streams}, {}
for _ in range(2):
    for message in airbyte("read", "--catalog", catalog, "--state", kept("state", list(states.values()))):
        if message["type"] == "RECORD":
            copies[message["record"]["stream"]].add(message["record"]["data"]["id"])
        if message["type"] == "STATE":
            states[message["state"]["stream"]["stream_descriptor"]["name"]] = message["state"]
for name in kinds.values():
    assert sorted(copies[name]) == listed(name), f"Airbyte: {name}: {sorted(copies[name])}"
print({name: len(copy) for name, copy in copies.items()})
