"""Asks a service what the README's tour asks, and changes nothing. It shows the status of each answer, and ends with the
first that is wrong. The argument is the URL. The environment has the credential: KEY, an API key, or TOKEN, a user's token.
"""

import json
import os
import sys
import urllib.error
import urllib.request

ERROR = {"statusCode", "error", "code", "message", "details", "requestId"}
ABSENT = "00000000-0000-7000-8000-000000000000"
PATIENCE = 35  # seconds; API Gateway answers within 29


def main():
    base, key, token = sys.argv[1].rstrip("/"), os.environ.get("KEY"), os.environ.get("TOKEN")
    if not key and not token:
        sys.exit("set KEY to an API key that may read products, or TOKEN to a user's token")
    user = {"Authorization": f"Bearer {token}"}
    reader = {"X-API-Key": key} if key else user
    ask(f"{base}/health", {}, 200, {"status"})
    ask(f"{base}/openapi.json", {}, 200, {"openapi", "paths"})
    products = ask(f"{base}/api/products?orderBy=sellingPrice&limit=1", reader, 200, {"data", "meta"})["data"]
    for product in products:
        ask(f"{base}/api/products/{product['id']}", reader, 200, {"id", "name"})
    ask(f"{base}/api/products/{ABSENT}", reader, 404, ERROR)
    ask(f"{base}/api/products?limit=500", reader, 400, ERROR)
    ask(f"{base}/api/products", {"X-API-Key": "of nobody"}, 401, ERROR)
    if token:
        ask(f"{base}/developers/applications", user, 200, {"data"})


def ask(url, headers, status, fields):
    """Returns the answer, an object with these fields."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=PATIENCE) as answer:
            got, body = answer.status, answer.read()
    except urllib.error.HTTPError as refusal:
        got, body = refusal.code, refusal.read()
    except (OSError, ValueError) as fault:
        sys.exit(f"{url}: {fault}")
    print(got, url, flush=True)
    value = fields_of(body)
    if got != status or not fields <= value.keys():
        sys.exit(f"want {status} with {', '.join(sorted(fields))}, got {body[:500].decode(errors='replace')}")
    return value


def fields_of(body):
    """Returns the object in the body, or none of its fields."""
    try:
        value = json.loads(body)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


if __name__ == "__main__":
    main()
