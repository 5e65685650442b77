"""python keep.py RUN_JSON FOLDER: has the guide's programs, which lie in the folder, keep copies while records of all kinds
are put, changed and deleted, and kills them and the processes of the service's functions meanwhile. In the end the copies
have to equal the lists. The service runs with --processes."""
import datetime, json, os, pathlib, random, shutil, signal, subprocess, sys, threading, time, urllib.error, urllib.request, uuid

import duckdb

run_json, folder = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
run, work, seconds = json.loads(run_json.read_text()), folder / "kept", 60
seed = int(os.environ.get("SEED", time.time()))
print(f"SEED={seed}", flush=True)
chance = random.Random(seed)
over = threading.Event()


def ask(path, body=None, **headers):
    """Asks until there is an answer: the function may have been killed."""
    headers |= {"Authorization": f"Bearer {run['jwt']}", "Content-Type": "application/json"}
    request = urllib.request.Request(run["baseUrl"] + path, data=body and json.dumps(body).encode(), headers=headers)
    while True:
        try:
            with urllib.request.urlopen(request, timeout=40) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as problem:
            if problem.code < 500 and problem.code != 429:
                raise RuntimeError(problem.read())
            time.sleep(1)
        except OSError:
            time.sleep(1)


paths = ask("/openapi.json")["paths"]
kinds = next(p for p in paths["/api/changes"]["get"]["parameters"] if p["name"] == "kinds")["schema"]["items"]["enum"]
one = {o["get"]["operationId"]: path for path, o in paths.items() if path.count("/") == 3 and path.endswith("/{id}") and "get" in o}
names = {kind: one["get" + kind.title().replace("_", "")].split("/")[2] for kind in kinds}


def listed(name):
    rows, after = {}, ""
    while True:
        page = ask(f"/api/{name}?limit=100&orderBy=id{after}")["data"]
        rows |= {row["id"]: row["updatedAt"] for row in page}
        if len(page) < 100:
            return rows
        after = f"&afterId={page[-1]['id']}"


receipts = []


def write():
    """Puts, changes and deletes records of one kind at a time."""
    examples = {kind: paths[f"/api/{name}"]["get"]["responses"]["200"]["content"]["application/json"]["example"]["data"][0]
                for kind, name in names.items()}
    while not over.is_set():
        kind = chance.choice(kinds)
        rows = ask(f"/api/{names[kind]}?limit=50&orderBy=createdAt&orderDirection={chance.choice(['asc', 'desc'])}")["data"]
        changes = []
        for n, row in enumerate(chance.sample(rows, min(10, len(rows)))):
            if n < 3 and len(rows) > 10:
                changes.append({"kind": kind, "op": "delete", "record": {"id": row["id"]}})
            else:
                day = datetime.date(2026, 1, 1) + datetime.timedelta(chance.randrange(300))
                changes.append({"kind": kind, "op": "put", "record": row | {"createdAt": f"{day}T00:00:00.000Z"}})
        for _ in range(4):
            row = {k: v for k, v in (rows or [examples[kind]])[0].items() if k != "organizationId"} | {"id": str(uuid.UUID(int=chance.getrandbits(128), version=4))}
            if "locationRef" in row:  # of which the id follows
                row["locationRef"] = row.pop("id")
            changes.append({"kind": kind, "op": "put", "record": row})
        receipts.append(ask("/ingest/records", {"records": changes}, **{"Idempotency-Key": str(uuid.uuid4())})["id"])


def kill_functions(killed=0):
    functions = str(run_json.resolve().parent / "functions") + "/"
    while not over.wait(chance.uniform(0.5, 2)):
        # A message of a killed ingest comes again after minutes, longer than this takes.
        found = [p for p in pathlib.Path("/proc").glob("[0-9]*/exe") if executable(p).startswith(functions) and executable(p) != functions + "ingest"]
        if found:
            os.kill(int(chance.choice(found).parent.name), signal.SIGKILL)
            killed += 1
    print(f"{killed} processes of functions were killed", flush=True)


def executable(link):
    try:
        return os.readlink(link)
    except OSError:  # it has ended, or is another user's
        return ""


def keep(name, sync):
    """Syncs again and again, and kills half of them. Others may fail with a function that is killed."""
    took, codes = None, []
    while not over.is_set():
        before = time.time()
        codes.append(sync(chance.uniform(0.3, 2) * took if took else None))
        if codes[-1] == 0:
            took = time.time() - before
    print(f"{name}: of {len(codes)} syncs {codes.count(-signal.SIGKILL)} were killed, {codes.count(0)} ended well", flush=True)


def killed_after(process, wait):
    timer = threading.Timer(wait or 3600, process.kill)
    timer.daemon = True
    timer.start()
    return timer


def dlt(program, pipeline):
    home = work / f"of-{pipeline}"  # dlt imports a folder that has the program's name
    home.mkdir()
    env = os.environ | {"API": run["baseUrl"], "KEY": run["apiKey"], "DLT_DATA_DIR": str(home), "RUNTIME__DLTHUB_TELEMETRY": "false", "RUNTIME__LOG_LEVEL": "CRITICAL"}

    def sync(wait):
        with open(home / "log", "w") as log:
            process = subprocess.Popen([sys.executable, folder / program], cwd=home, env=env, stdout=log, stderr=log)
            timer = killed_after(process, wait)
            code = process.wait()
            timer.cancel()
        return code

    return sync


def rows_of(database, query):
    with duckdb.connect(str(database), read_only=True) as db:
        db.execute("SET TimeZone = 'UTC'")
        return {row[0]: row[1].strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z" for row in db.execute(query).fetchall()}


class Airbyte:
    """A destination that commits a stream's records with its state, and drops those behind it when the source dies."""

    def __init__(self):
        self.command = [os.path.dirname(sys.executable) + "/source-declarative-manifest", "--manifest-path", str(folder / "manifest.yaml"), "--config",
                        self.stored("config", {"api": run["baseUrl"], "key": run["apiKey"]})]
        self.command.insert(1, "discover")
        found = subprocess.run(self.command, check=True, text=True, stdout=subprocess.PIPE).stdout.splitlines()
        streams = next(m["catalog"]["streams"] for m in map(json.loads, found) if m["type"] == "CATALOG")
        self.catalog = self.stored("catalog", {"streams": [{"stream": s, "sync_mode": "incremental", "destination_sync_mode": "append_dedup"} for s in streams]})
        self.copies, self.states = {s["name"]: {} for s in streams}, {}

    def stored(self, name, value):
        (work / f"{name}.json").write_text(json.dumps(value))
        return str(work / f"{name}.json")

    def sync(self, wait):
        pending = {}
        command = ["read" if part == "discover" else part for part in self.command]
        command += ["--catalog", self.catalog, "--state", self.stored("state", list(self.states.values()))]
        with subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
            timer = killed_after(process, wait)
            for line in process.stdout:
                try:
                    message = json.loads(line)
                except ValueError:  # the last one of a source that was killed
                    continue
                if message["type"] == "RECORD":
                    pending.setdefault(message["record"]["stream"], []).append(message["record"]["data"])
                elif message["type"] == "STATE":
                    name = message["state"]["stream"]["stream_descriptor"]["name"]
                    self.states[name] = message["state"]
                    for row in pending.pop(name, []):
                        self.copies[name][row.get("kind"), row["id"]] = row
            timer.cancel()
        return process.returncode

    def rows(self, kind, name):
        gone = {key: row["deletedAt"] for key, row in self.copies["deletions"].items()}
        return {i: row["updatedAt"] for (_, i), row in self.copies[name].items() if gone.get((kind, i), "") <= row["updatedAt"]}


shutil.rmtree(work, ignore_errors=True)
work.mkdir(parents=True)
airbyte = Airbyte()
tools = {"dlt, feed": dlt("copy_dlt.py", "commerce"), "dlt, lists": dlt("copy_lists.py", "lists"), "Airbyte": airbyte.sync}
threads = [threading.Thread(target=write), threading.Thread(target=kill_functions)]
threads += [threading.Thread(target=keep, args=tool) for tool in tools.items()]
for thread in threads:
    thread.start()
time.sleep(seconds)
over.set()
for thread in threads:
    thread.join()
for receipt in receipts:
    while ask(f"/ingest/receipts/{receipt}")["status"] != "COMPLETED":
        time.sleep(0.5)
lists, before = {name: listed(name) for name in names.values()}, None
while lists != before:  # a change takes about a second to its list
    time.sleep(3)
    lists, before = {name: listed(name) for name in names.values()}, lists
for name, sync in 2 * list(tools.items()):  # dlt's first one may do no more than end the one that was killed
    assert sync(None) == 0, f"{name}: the last sync failed"
wrong = 0
for kind, name in names.items():
    copies = {
        "dlt, feed": rows_of(work / "of-commerce/commerce.duckdb", f'SELECT id, updated_at FROM copy."{kind}"'),
        "dlt, lists": rows_of(work / "of-lists/lists.duckdb", f'''SELECT id, updated_at FROM copy."{name}" r WHERE NOT EXISTS
            (SELECT 1 FROM copy.deletions d WHERE d.kind = '{kind}' AND d.id = r.id AND d.deleted_at > r.updated_at)'''),
        "Airbyte": airbyte.rows(kind, name),
    }
    for tool, copy in copies.items():
        different = sorted(i for i in lists[name].keys() | copy.keys() if lists[name].get(i) != copy.get(i))
        wrong += len(different)
        print(f"{tool}: {name}: {len(copy)} records, {len(different)} different", *different[:3], flush=True)
sys.exit(wrong > 0)
