"""Runs `sam local` on the functions in dist, with the table and queues of a
`make run` that is under way: `start-api` serves the API, `invoke` sends one
function a sample of events. `check` sees, without a run and without Docker,
that the SAM CLI finds every operation of the template and its authorizer. Run
by the Python of the SAM CLI's own environment, from the root of the repository.

It makes what that takes: an image with the SAM CLI's runtime emulator and
nothing else, ways for containers to servers that listen on loopback only, the
functions' environment, and a copy of the template that the SAM CLI reads as
API Gateway reads the original.
"""

import argparse
import base64
import hashlib
import io
import json
import os
import pathlib
import platform
import re
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import threading
import urllib.parse

import samcli
from samcli.lib.providers.api_provider import ApiProvider
from samcli.lib.providers.sam_stack_provider import SamLocalStackProvider
from samcli.yamlhelper import yaml_dump, yaml_parse

BUILD = pathlib.Path(".build")
METHODS = ("get", "head", "post", "put", "patch", "delete", "options")
ANY = "x-amazon-apigateway-any-method"


# What the samples name, by what a run tells of itself in its place.
SAMPLE = {
    "organizationId": "01938f5a-0f00-7000-8000-000000000001",
    "siteId": "01938f5a-0f00-7000-8000-000000000011",
    "applicationId": "01938f5a-0f00-7000-8000-000000000031",
    "jwt": "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJodHRwczovL2lzc3Vlci5leGFtcGxlIn0.c2lnbmF0dXJl",
    "apiKey": "cis_live_Ab3dE6gHExample0Example0Example0Example00qAYPd",
}


def main():
    parser = argparse.ArgumentParser(description="sam local beside a local run")
    parser.add_argument("--data", default=".local", help="data folder of the run")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("start-api").add_argument("--port", default="3100", help="port of the API")
    commands.add_parser("invoke").add_argument("event", help="a file of events, without .json")
    commands.add_parser("check")
    options = parser.parse_args()
    if options.command == "check":
        sys.exit(check())
    if not shutil.which("docker"):
        sys.exit("sam local needs Docker, and there is no docker command here; make emulate does without")

    arch = {"amd64": "x86_64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    run, state = read_run(pathlib.Path(options.data))
    make_image(arch)
    # Files of its own for each command: start-api looks after changes of them.
    variables = BUILD / f"sam-local-{options.command}-env.json"
    template = BUILD / f"sam-local-{options.command}.yaml"
    source = pathlib.Path("template.yaml").read_text()
    declared = yaml_parse(source)
    template.write_text(local_template(source))
    write_private(variables, json.dumps({"Parameters": environment(run, state, declared)}))
    # What the state's stack would give has its own name as its value: the functions' environment says where it is.
    parameters = {name: name for name, p in declared["Parameters"].items() if "Default" not in p}
    parameters |= {"Architecture": arch} | dict(zip(("JwtIssuer", "JwtAudience"), issuer_of(run["jwt"])))
    common = [
        "-t", str(template), "--env-vars", str(variables), "--skip-pull-image",
        "--parameter-overrides", " ".join(f"{name}={value}" for name, value in parameters.items()),
    ]
    if options.command == "invoke":
        sys.exit(invoke(options.event, run, common))
    sys.exit(start_api(options.port, common))


def check():
    """Returns what is wrong, or None where the SAM CLI finds every operation and
    its authorizer."""
    source = pathlib.Path("template.yaml").read_text()
    paths = yaml_parse(source)["Resources"]["Api"]["Properties"]["DefinitionBody"]["paths"]
    declared = {
        (path, method.upper(), *scheme)
        for path, methods in paths.items() for method, operation in methods.items() if method in METHODS
        for scheme in operation.get("security", [{}])
    }
    local = BUILD / "sam-local-check.yaml"
    BUILD.mkdir(exist_ok=True)
    local.write_text(local_template(source))
    stacks, _ = SamLocalStackProvider.get_stacks(str(local))
    found = set()
    for route in ApiProvider(stacks).api.routes:
        authorizer = [route.authorizer_object.authorizer_name] if route.authorizer_object else []
        found |= {(route.path, method, *authorizer) for method in route.methods}
    missing = sorted(declared - found)
    return f"sam local would not serve {len(missing)} operations, among them {' '.join(missing[0])}" if missing else None


def sam(*arguments):
    own = {
        "SAM_CLI_TELEMETRY": "0", "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local", "AWS_SESSION_TOKEN": "",
        # It asks STS for the account's number, and does without an answer.
        "AWS_ENDPOINT_URL_STS": "http://127.0.0.1:9", "AWS_MAX_ATTEMPTS": "1",
    }
    command = [str(pathlib.Path(sys.executable).parent / "sam"), "local", *arguments]
    return {"args": command, "env": os.environ | own}


def start_api(port, common):
    with subprocess.Popen(**sam("start-api", "--port", port, "--warm-containers", "LAZY", *common)) as process:
        # The terminal's interrupt reaches sam, too, which then ends.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, lambda *_: process.terminate())
        return process.wait()


def invoke(name, run, common):
    """Sends a sample to its function, with the run's identities and
    credentials in place of its own, and prints the answer."""
    samples = sorted(file.stem for file in pathlib.Path("events").glob("*.json"))
    if name not in samples:
        sys.exit(f"there is no sample {name}; there are {', '.join(samples)}")
    text = pathlib.Path("events", name + ".json").read_text()
    for key, own in SAMPLE.items():
        text = text.replace(own, run[key]).replace(digest(own), digest(run[key]))
    event = BUILD / "sam-local-event.json"
    write_private(event, text)
    function = name.partition("-")[0].capitalize() + "Function"
    done = subprocess.run(**sam("invoke", function, "-e", str(event), *common), stdout=subprocess.PIPE, text=True)
    answer = done.stdout.strip()
    print(answer)
    # The SAM CLI ends well whatever the function does.
    return done.returncode or failed(answer)


def digest(credential):
    """As the authorizer hands it to the functions."""
    return base64.urlsafe_b64encode(hashlib.sha256(credential.encode()).digest()).rstrip(b"=").decode()


def failed(answer):
    try:
        error = json.loads(answer)
    except ValueError:
        return True
    return isinstance(error, dict) and "errorType" in error


def make_image(arch):
    """Makes the image that the SAM CLI would build on one that it would pull:
    the functions are static binaries and need nothing of it."""
    image = f"public.ecr.aws/lambda/provided:al2023-rapid-{arch}"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    if subprocess.run(["docker", "image", "inspect", image], **quiet).returncode == 0:
        return
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        scratch = tarfile.TarInfo("tmp")
        scratch.type, scratch.mode = tarfile.DIRTYPE, 0o1777
        tar.addfile(scratch)
        emulator = pathlib.Path(samcli.__file__).parent / "local" / "rapid" / f"aws-lambda-rie-{arch}"
        add(tar, emulator, "var/rapid/aws-lambda-rie", 0o755)
        certificates = pathlib.Path("/etc/ssl/certs/ca-certificates.crt")
        if certificates.exists():
            add(tar, certificates, "etc/ssl/certs/ca-certificates.crt", 0o644)
    if subprocess.run(["docker", "import", "-", image], input=archive.getvalue(), stdout=subprocess.DEVNULL).returncode:
        sys.exit("docker import failed; is Docker running?")


def add(tar, file, name, mode):
    content = file.read_bytes()
    member = tarfile.TarInfo(name)
    member.mode, member.size = mode, len(content)
    tar.addfile(member, io.BytesIO(content))


def read_run(data):
    """Returns what the run tells of itself, and what it keeps."""
    try:
        return json.loads((data / "run.json").read_text()), json.loads((data / "state.json").read_text())
    except FileNotFoundError as missing:
        sys.exit(f"{missing.filename} is not there; start make run first")


def issuer_of(token):
    payload = token.split(".")[1]
    claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    return claims["iss"], claims["aud"] if isinstance(claims["aud"], str) else claims["aud"][0]


def queue_urls(template, beside):
    """Returns the variables by which the template names queues, with the URLs
    that the run's queues of these names have."""
    found = {}
    for resource in template["Resources"].values():
        for name, value in resource.get("Properties", {}).get("Environment", {}).get("Variables", {}).items():
            text = value.get("Fn::Sub", "") if isinstance(value, dict) else ""
            if queue := re.search(r"/\$\{(\w+)Name\}$", text):
                found[name] = f"{beside}/{queue[1]}"
    return found


def environment(run, state, template):
    """Returns the functions' environment."""
    queues = reachable(run["sqsEndpoint"])
    return queue_urls(template, run["recordsQueueUrl"].rpartition("/")[0]) | {
        "TABLE_NAME": run["tableName"],
        "JWKS_URL": f"{queues}/.well-known/jwks.json",
        "SERVICE_KEY": " ".join([state["serviceKey"], state.get("olderServiceKey", "")]).strip(),
        "SIGNING_SECRETS": state["signingSecret"],
        "ALLOW_PRIVATE_TARGETS": "true",
        "AWS_ENDPOINT_URL_DYNAMODB": reachable(run["dynamodbEndpoint"]),
        "AWS_ENDPOINT_URL_SQS": queues,
    }


def write_private(file, text):
    file.touch(mode=0o600)
    file.write_text(text)


def local_template(text):
    """Returns the template with every any-method spelt out, and functions in
    the place of their aliases, which the SAM CLI does not resolve.

    The SAM CLI merges the methods of a path that lead to one function and
    have no operationId, and gives them all the authorizer of whichever comes
    last out of a set; and it lets ANY take the declared methods, too. With
    methods of their own and operationIds, each keeps what it declares."""
    template = yaml_parse(re.sub(r"!Ref (\w+)\.Alias", r"!GetAtt \1.Arn", text).replace(".Alias}", ".Arn}"))
    resources = template["Resources"]
    for path, methods in resources["Api"]["Properties"]["DefinitionBody"]["paths"].items():
        others = methods.pop(ANY, None)
        for method in METHODS:
            operation = methods.get(method, others)
            if operation is not None:
                methods[method] = dict(operation, operationId=f"{method} {path}")
    for resource in resources.values():
        if resource["Type"] == "AWS::Serverless::Function":
            resource["Properties"]["CodeUri"] = str(pathlib.Path(resource["Properties"]["CodeUri"]).absolute())
    return yaml_dump(template)


def reachable(endpoint):
    """Returns a URL at which containers reach a server of this machine. On
    Linux its loopback is out of their reach, so connections are passed on from
    the address of Docker's bridge; elsewhere Docker does that itself."""
    port = urllib.parse.urlsplit(endpoint).port
    if sys.platform != "linux":
        return f"http://host.docker.internal:{port}"
    listener = socket.create_server((bridge_address(), 0))
    threading.Thread(target=serve, args=(listener, port), daemon=True).start()
    host, own_port = listener.getsockname()
    return f"http://{host}:{own_port}"


def bridge_address():
    import fcntl  # pylint: disable=import-outside-toplevel # Linux only

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = b"docker0".ljust(256, b"\0")
        siocgifaddr = 0x8915
        try:
            return socket.inet_ntoa(fcntl.ioctl(any_socket.fileno(), siocgifaddr, request)[20:24])
        except OSError as fault:
            sys.exit(f"docker0 has no address ({fault}); is Docker running?")


def serve(listener, port):
    while True:
        client, _ = listener.accept()
        try:
            server = socket.create_connection(("127.0.0.1", port))
        except OSError:
            client.close()
            continue
        for source, sink in ((client, server), (server, client)):
            threading.Thread(target=passing, args=(source, sink), daemon=True).start()


def passing(source, sink):
    try:
        while chunk := source.recv(1 << 16):
            sink.sendall(chunk)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        source.close()
        sink.close()


if __name__ == "__main__":
    main()
