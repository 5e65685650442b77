"""What Schemathesis has to know about the service beyond its OpenAPI document:
credentials, rules between two parameters, ids of what exists, and that no
webhook may leave this machine."""

import itertools
import json
import os
import random
import re
from urllib.parse import urlsplit, urlunsplit

import requests
import schemathesis

with open(os.environ["CONFORM_RUN"]) as file:
    run = json.load(file)


def application():
    """Returns a token of the demo application, which may manage its webhooks."""
    scopes = ["products", "categories", "orders", "customers", "invoices", "stock", "webhooks"]
    granted = requests.put(
        f"{run['baseUrl']}/developers/applications/{run['applicationId']}/token-scopes",
        headers={"Authorization": "Bearer " + run["jwt"]},
        json={"scopes": [scope + ":read" for scope in scopes] + ["webhooks:write"]},
    )
    granted.raise_for_status()
    answer = requests.post(
        run["baseUrl"] + "/oauth/token",
        auth=(run["clientId"], run["clientSecret"]),
        data={"grant_type": "client_credentials"},
    )
    answer.raise_for_status()
    return answer.json()["access_token"]


# Users have a rate limit each, so they take turns.
who = os.environ["CONFORM_AS"]
tokens = itertools.cycle([application()] if who == "application" else os.environ.get("CONFORM_USERS", "").split())
chance = random.Random(1)
known = {}  # ids by the path of their item


@schemathesis.auth(refresh_interval=None).skip_for(path=["/oauth/token", "/oauth/revoke"])
class Credential:
    def get(self, case, context):
        return who

    def set(self, case, data, context):
        if data == "key":
            case.headers["X-API-Key"] = run["apiKey"]
        else:
            case.headers["Authorization"] = "Bearer " + next(tokens)


# What a field of a body can hold whose schema is an open enumeration.
VALUES = {
    "events": ["order.*", "product.created", "customer.updated"],
    "scopes": ["orders:read", "products:read", "invoices:read"],
    "payload": ["full", "thin"],
    "status": ["ACTIVE", "PAUSED"],
    "type": ["webhook.test", "order.created"],
}
SESSION_SCOPES = ["webhooks:read", "webhooks:write"]

# Rules that depend on the time, on another parameter or on requests before,
# which no schema can hold: faults by field, and codes of the others.
RULES = {
    "applicationId": "not_allowed", "status": "not_allowed", "organizationId": "not_allowed",
    "events": "not_allowed",  # an endpoint's delivery settings name fields of others
    "search": "out_of_range",  # more than ten words
    "limit": "out_of_range",  # more than 100 entries but in a walk
    "expiresAt": "out_of_range", "from": "out_of_range", "to": "out_of_range", "since": "out_of_range", "until": "out_of_range",
    "name": "invalid_format", "description": "invalid_format", "currency": "invalid_format",  # control characters
    "kind": "invalid_format",  # none of the open enumeration
    "content": "invalid_format",  # no CSV file
}
CODES = {"precondition_failed", "idempotency_key_reused", "cursor_expired", "cursor_mismatch"}
# What has rules of its own: cursors, fields of objects, own fields, event patterns, names and values of
# headers, envelopes of records, networks, authorization requests, and secrets by the kind of their source.
OPEN = re.compile(r"(after|allow|allowedNetworks|attributes|changed|fields|filter|has|headers|metadata|records|request|secret)\b")


@schemathesis.hook
def before_call(context, case, **kwargs):
    keep_here(case)
    if case.meta is None or not case.meta.generation.mode.is_positive:
        return
    query = case.query or {}
    if "afterId" in query:
        for other in ("page", "orderBy", "orderDirection"):
            query.pop(other, None)
    if query.get("orderBy") in ("id", ["id"]):  # which walks as afterId does
        query.pop("page", None)
    if "X-Site-Id" in (case.headers or {}):
        query.pop("siteId", None)
    if "currency" in query:
        query["currency"] = ["EUR"]
    for part in (query, case.body if isinstance(case.body, dict) else {}):
        for name, v in part.items():
            if part is query or name not in VALUES or case.path.endswith("/client"):  # whose type has an enumeration
                part[name] = plain(v)
            elif isinstance(v, list):
                part[name] = chance.sample(SESSION_SCOPES if case.path.endswith("/portal-sessions") else VALUES[name], 1)
            elif isinstance(v, str):
                part[name] = chance.choice(VALUES[name])
    ids = known.get(case.path)
    if ids and case.path_parameters and chance.random() < 0.7:
        case.path_parameters.update(chance.choice(ids))


def plain(v):
    """Writes a number or a time as the service takes it: 5 for 5.0, which is an
    integer to JSON Schema, no more than four decimals of an amount, and no more
    than three of a second."""
    if isinstance(v, float):
        return int(v) if v.is_integer() else f"{v:.4f}"
    return re.sub(r"(T\d\d:\d\d:\d\d\.\d{3})\d+", r"\1", v, flags=re.IGNORECASE) if isinstance(v, str) else v


@schemathesis.hook
def filter_failure(context, failure, case, response):
    """Drops the refusals of what a schema permits and a rule does not."""
    if failure.code == "ST201":  # what the schemas forbid was accepted: capitals are as good here
        return str((case.query or {}).get("orderDirection")).lower() not in ("asc", "desc")
    if failure.code != "ST202":  # not the rejection of what they permit
        return True
    fault = response.json()
    if fault.get("code") in CODES:
        return False
    details = fault.get("details", [])
    return not details or any(
        RULES.get(d["field"]) != d["code"] and not is_span(d) and not is_text(d) and not OPEN.match(d["field"]) for d in details)


def is_span(detail):
    """A span of times or amounts that ends before it starts."""
    return re.match(r"\w+From$|min[A-Z]", detail["field"]) and detail["code"] == "out_of_range"


def is_text(detail):
    """A parameter with control characters, or with U+FFFD."""
    return detail["in"] == "query" and detail["message"].endswith("without control characters")


def keep_here(case):
    """Sends webhooks to a port of this machine at which nothing listens."""
    if not isinstance(case.body, dict) or not isinstance(case.body.get("url"), str):
        return
    try:
        parts = urlsplit(case.body["url"])
        if parts.scheme in ("http", "https") and parts.hostname and parts.port != 0:
            user, at, _ = parts.netloc.rpartition("@")
            case.body["url"] = urlunsplit(parts._replace(netloc=user + at + "127.0.0.1:9"))
    except ValueError:
        pass  # the service refuses it


@schemathesis.hook
def after_call(context, case, response):
    """Remembers ids, so that later requests find what they ask for."""
    if response.status_code not in (200, 201) or case.method not in ("GET", "POST"):
        return
    try:
        answer = response.json()
    except ValueError:
        return
    entries = answer.get("data", [answer]) if isinstance(answer, dict) else []
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, dict) and "id" in entry:
            remember(case, entry["id"])


def remember(case, id):
    name = "keyId" if case.path.endswith("/api-keys") else "grantId" if case.path.endswith("/grants") else "recoveryId" if case.path.endswith("/recover") else "id"
    found = dict(case.path_parameters or {}, **{name: id})
    if name == "id" and case.path_parameters:
        return  # an action's answer
    for path in case.operation.schema.raw_schema["paths"]:
        if path.startswith(case.path.removesuffix("/recover")) and set(found) == {p[1:-1] for p in path.split("/") if p.startswith("{")}:
            known.setdefault(path, []).append(found)
