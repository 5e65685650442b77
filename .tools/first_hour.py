"""Does what the README tells a new user, on a fresh clone of this folder's last commit, and prints how long it took.

It starts the service, pastes the README's "Five minutes" into bash, and compares what that prints with what the README
shows. What npm and Go have cached stays cached; port 4000, which the README names, must be free.
"""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

LIMIT = 600  # seconds, after which something hangs
ADDRESS = "127.0.0.1:3300"


def section(readme: str, title: str) -> tuple[str, list[str]]:
    """The commands of a section, and the lines that it shows of their output."""
    text = re.search(rf"^## {title}\n(.*?)^## ", readme, re.M | re.S).group(1)
    commands = "".join(re.findall(r"^```sh\n(.*?)^```", text, re.M | re.S))
    return commands, re.findall(r"^```console\n(.*?)^```", text, re.M | re.S)[-1].splitlines()


def shape(line: str) -> str:
    """A line without what differs each time: ids, times and durations."""
    line = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "ID", line)
    line = re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME", line)
    return re.sub(r'"durationMs":\d+|\([\d.]+m?s\)', "DURATION", line)


def paste(commands: str, shown: list[str], folder: pathlib.Path) -> None:
    # A line is one write, which the lines of programs in the background do not divide.
    env = {**os.environ, "PYTHONUNBUFFERED": ""}
    out = subprocess.run(["bash"], input=commands, cwd=folder, env=env, text=True, timeout=LIMIT,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout
    # Background programs print when they like, so the order is not compared.
    missing = {shape(line) for line in shown} - {shape(line) for line in out.splitlines()}
    if missing:
        sys.exit("the README shows this, which was not printed:\n" + "\n".join(sorted(missing)) + "\nbut:\n" + out)


def answers(folder: pathlib.Path) -> bool:
    try:
        info = json.loads((folder / ".local/run.json").read_text())
        request = urllib.request.Request(info["baseUrl"] + "/api/products", headers={"X-API-Key": info["apiKey"]})
        return urllib.request.urlopen(request).status == 200
    except OSError:
        return False


def main() -> None:
    began = time.monotonic()

    def step(what: str) -> None:
        print(f"{time.monotonic() - began:6.1f} s  {what}", flush=True)

    with tempfile.TemporaryDirectory() as parent:
        folder = pathlib.Path(parent) / "clone"
        subprocess.run(["git", "clone", "--quiet", ".", folder], check=True)
        step("cloned")
        readme = (folder / "README.md").read_text()
        run = subprocess.Popen(["make", "run", f"RUN_FLAGS=--addr {ADDRESS}"], cwd=folder, start_new_session=True,
                               stdout=subprocess.DEVNULL, env={**os.environ, "MAKEFLAGS": ""})
        try:
            while not answers(folder):
                if run.poll() is not None or time.monotonic() - began > LIMIT:
                    sys.exit("make run does not answer")
                time.sleep(0.2)
            step("first 200")
            paste(*section(readme, "Five minutes"), folder)
            step("the tour of five minutes, with verified webhooks")
        finally:
            os.killpg(run.pid, signal.SIGINT)
            run.wait()


main()
