"""Runs OAuth 2.0's authorization code by Authlib, as a confidential client: against the service of
the run.json that is given, whose owner decides as the portal's page does."""
import json
import os
import sys
from urllib.parse import urlsplit

import requests
from authlib.integrations.base_client import OAuthError
from authlib.integrations.requests_client import OAuth2Session

os.environ["AUTHLIB_INSECURE_TRANSPORT"] = "1"  # the service is on this machine
run = json.load(open(sys.argv[1]))
base, owner = run["baseUrl"], {"Authorization": "Bearer " + run["jwt"]}


def ask(method, path, body=None):
    answer = requests.request(method, base + path, headers=owner, json=body, timeout=10)
    answer.raise_for_status()
    return answer.json() if answer.content else None


app = ask("POST", "/developers/applications", {"name": "Authlib", "redirectUri": "https://shop.example.com/back"})
server = requests.get(base + "/.well-known/oauth-authorization-server", timeout=10).json()
client = OAuth2Session(
    app["clientId"], app["clientSecret"], scope="orders:read products:read", redirect_uri="https://shop.example.com/back",
    code_challenge_method="S256", token_endpoint=server["token_endpoint"])
verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
page, state = client.create_authorization_url(server["authorization_endpoint"], code_verifier=verifier)
back = ask("POST", "/developers/grants", {"request": urlsplit(page).query, "allow": ["orders:read"]})["redirectTo"]
token = client.fetch_token(server["token_endpoint"], authorization_response=back, state=state, code_verifier=verifier)
assert token["scope"] == "orders:read", token
token = client.refresh_token(server["token_endpoint"])
assert client.get(base + "/api/orders").status_code == 200
assert client.get(base + "/api/products").status_code == 403
grants = ask("GET", f"/developers/applications/{app['id']}/grants")["data"]
assert len(grants) == 1, grants
revoked = client.revoke_token(server["revocation_endpoint"], token["refresh_token"])
assert revoked.status_code == 200, revoked.text
try:
    client.refresh_token(server["token_endpoint"])
    sys.exit("a revoked grant was refreshed")
except OAuthError as refused:
    assert refused.error == "invalid_grant", refused
print("Authlib: ok")
