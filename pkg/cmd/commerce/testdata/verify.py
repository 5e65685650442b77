"""Verifies webhooks by the official Python library.

Each line of the standard input is {"secret", "request"}, the request in base64
as it came over the wire; each line of the output is "good", or "bad: " and why
the library refuses it.
"""

import base64
import json
import sys

from standardwebhooks import Webhook, WebhookVerificationError

for line in sys.stdin:
    case = json.loads(line)
    head, _, body = base64.b64decode(case["request"]).partition(b"\r\n\r\n")
    headers = {}
    for header in head.decode("latin-1").split("\r\n")[1:]:
        name, _, value = header.partition(":")
        headers[name.lower()] = value.strip()
    try:
        Webhook(case["secret"]).verify(body, headers)
        print("good")
    except WebhookVerificationError as refusal:
        print(f"bad: {refusal}")
    except Exception as failure:
        print(f"failed: {failure!r}")
