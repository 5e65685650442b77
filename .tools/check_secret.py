"""Refuses a secret in Secrets Manager that HS256 tokens cannot be verified with: one that is not there, or whose text has
less than 32 bytes (RFC 7518, section 3.2). The argument is its ARN. It shows nothing of the secret. Run by the Python of
the SAM CLI's own environment.
"""

import sys

import boto3

MIN_BYTES = 32


def main():
    arn = sys.argv[1]
    region = arn.split(":")[3] if arn.count(":") >= 6 else None
    try:
        text = boto3.client("secretsmanager", region_name=region).get_secret_value(SecretId=arn).get("SecretString", "")
    except Exception as fault:  # pylint: disable=broad-except # whatever it is, the secret was not read
        sys.exit(f"the HS256 secret {arn} cannot be read: {fault}")
    size = len(text.encode())
    if size < MIN_BYTES:
        sys.exit(f"the HS256 secret {arn} has {size} bytes of text, and must have at least {MIN_BYTES}")


if __name__ == "__main__":
    main()
