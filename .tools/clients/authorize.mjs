// Runs OAuth 2.0's authorization code by openid-client, as a public client: against the service of
// the run.json that is given, whose owner decides as the portal's page does.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import * as oauth from "openid-client";

const run = JSON.parse(readFileSync(process.argv[2], "utf8"));
const ask = async (method, path, body) => {
  const answer = await fetch(run.baseUrl + path, {
    method,
    headers: { Authorization: `Bearer ${run.jwt}`, "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
  assert.ok(answer.ok, `${method} ${path}: ${answer.status} ${await answer.clone().text()}`);
  return answer.json();
};

const app = await ask("POST", "/developers/applications", { name: "openid-client", redirectUri: "http://127.0.0.1/back" });
await ask("PUT", `/developers/applications/${app.id}/client`, { type: "PUBLIC" });
const redirect_uri = "http://127.0.0.1:51004/back";

const config = await oauth.discovery(new URL(run.baseUrl), app.clientId, undefined, oauth.None(), {
  algorithm: "oauth2",
  execute: [oauth.allowInsecureRequests],
});
assert.ok(config.serverMetadata().supportsPKCE());
const pkceCodeVerifier = oauth.randomPKCECodeVerifier();
const expectedState = oauth.randomState();
const page = oauth.buildAuthorizationUrl(config, {
  redirect_uri,
  scope: "orders:read",
  state: expectedState,
  code_challenge: await oauth.calculatePKCECodeChallenge(pkceCodeVerifier),
  code_challenge_method: "S256",
});
assert.equal((await fetch(page)).status, 200);
const decide = async (allow) => new URL((await ask("POST", "/developers/grants", { request: page.search.slice(1), allow })).redirectTo);

const checks = { pkceCodeVerifier, expectedState };
await assert.rejects(oauth.authorizationCodeGrant(config, await decide([]), checks), { error: "access_denied" });
const back = await decide(["orders:read"]);
const tokens = await oauth.authorizationCodeGrant(config, back, checks);
assert.equal(tokens.scope, "orders:read");
const next = await oauth.refreshTokenGrant(config, tokens.refresh_token);
const read = await oauth.fetchProtectedResource(config, next.access_token, new URL(`${run.baseUrl}/api/orders`), "GET");
assert.equal(read.status, 200);
await assert.rejects(oauth.authorizationCodeGrant(config, back, checks), { error: "invalid_grant" }); // which ends the grant
await assert.rejects(oauth.refreshTokenGrant(config, next.refresh_token), { error: "invalid_grant" });
await oauth.tokenRevocation(config, next.refresh_token); // there is nothing to end
const another = await oauth.authorizationCodeGrant(config, await decide(["orders:read"]), checks);
await oauth.tokenRevocation(config, another.access_token);
await assert.rejects(oauth.refreshTokenGrant(config, another.refresh_token), { error: "invalid_grant" });
console.log("openid-client: ok");
