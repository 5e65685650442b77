"""Verifies webhooks by the official Python library.

Each line of the standard input is {"secret", "header", "body"}; each line of the
output is "good", or "bad: " and why the library refuses it.
"""

import json
import sys

from standardwebhooks import Webhook, WebhookVerificationError

for line in sys.stdin:
    case = json.loads(line)
    try:
        Webhook(case["secret"]).verify(case["body"], case["header"])
        print("good")
    except WebhookVerificationError as refusal:
        print(f"bad: {refusal}")
    except Exception as failure:
        print(f"failed: {failure!r}")
