import assert from "node:assert/strict";
import { test } from "node:test";
import { Webhook } from "standardwebhooks";
import { all, createClient, parseDelivery, ServiceError } from "@commerce-integration/client";

const json = (status, body, headers = {}) => () => new Response(JSON.stringify(body), { status, headers });
const noAnswer = () => {
  throw new TypeError("fetch failed");
};

// inTurn makes a client whose requests get one reply after another, and then the
// last one again. It keeps the requests, and what the client waits for, in ms.
function inTurn(t, replies, options = {}) {
  const requests = [];
  const waits = [];
  t.mock.restoreAll();
  t.mock.method(globalThis, "setTimeout", (call, ms) => {
    waits.push(ms);
    queueMicrotask(call);
  });
  const client = createClient({
    baseUrl: "https://api.example.com/prod/",
    ...options,
    async fetch(request) {
      requests.push({ request, body: await request.clone().text() });
      return (replies.length > 1 ? replies.shift() : replies[0])(request);
    },
  });
  return { client, requests, waits };
}

const get = (client) => client.GET("/api/me");
const post = (client) => client.POST("/developers/applications", { body: { name: "Shop" } });
const patch = (client) => client.PATCH("/developers/applications/{id}", { params: { path: { id: "x" } }, body: {} });

for (const [name, ask, first, wait, options] of [
  ["429 waits as told", get, json(429, {}, { "Retry-After": "7" }), 7000],
  ["503 until a date that is over", get, json(503, {}, { "Retry-After": "Sat, 01 Jan 2000 00:00:00 GMT" }), 0],
  ["504", get, json(504, {}, { "Retry-After": "1" }), 1000],
  ["a creation", post, json(503, {}, { "Retry-After": "1" }), 1000],
  ["a creation that is under way", post, json(409, {}, { "Retry-After": "1" }), 1000],
  ["a conflict", post, json(409, {})],
  ["a change that may have acted", patch, json(503, {}, { "Retry-After": "1" })],
  ["a change that was not let in", patch, json(429, {}, { "Retry-After": "1" }), 1000],
  ["our fault", get, json(400, {})],
  ["the service's fault", get, json(500, {})],
  ["never", get, json(503, {}, { "Retry-After": "1" }), undefined, { retries: 0 }],
]) {
  test(`a request is repeated when that can help: ${name}`, async (t) => {
    const { client, requests, waits } = inTurn(t, [first, json(200, {})], options);
    const { response } = await ask(client);
    assert.equal(response.ok, wait !== undefined);
    assert.deepEqual(waits, wait === undefined ? [] : [wait]);
    assert.equal(requests.length, 1 + waits.length);
  });
}

test("repetitions of a POST are the same request, ever later", async (t) => {
  const { client, requests, waits } = inTurn(t, [noAnswer]);
  await assert.rejects(post(client), /fetch failed/);
  assert.equal(requests.length, 5);
  const keys = new Set(requests.map(({ request }) => request.headers.get("Idempotency-Key")));
  assert.ok(keys.size === 1 && !keys.has(null), [...keys]);
  for (const { body } of requests) assert.equal(body, '{"name":"Shop"}');
  waits.forEach((ms, i) => assert.ok(ms >= 250 * 2 ** i && ms <= 500 * 2 ** i, `wait ${i}: ${ms} ms`));

  const own = inTurn(t, [json(201, {})]);
  await own.client.POST("/developers/applications", { body: { name: "Shop" }, params: { header: { "Idempotency-Key": "mine" } } });
  assert.equal(own.requests[0].request.headers.get("Idempotency-Key"), "mine");
});

test("a change without an answer is not repeated", async (t) => {
  const change = inTurn(t, [noAnswer]);
  await assert.rejects(patch(change.client), /fetch failed/);
  assert.equal(change.requests.length, 1);
});

test("a request that is given up waits no longer", async () => {
  const client = createClient({ baseUrl: "https://api.example.com", fetch: async () => json(429, {}, { "Retry-After": "3600" })() });
  const given = new AbortController();
  const asked = client.GET("/api/me", { signal: given.signal });
  setImmediate(() => given.abort(new Error("given up")));
  await assert.rejects(asked, /given up/);
});

test("a token is made once, and again when it is refused", async (t) => {
  let made = 0;
  let accepted = "Bearer 1";
  const { client, requests } = inTurn(
    t,
    [
      (request) => {
        if (new URL(request.url).pathname === "/prod/oauth/token") return json(200, { access_token: `${++made}`, expires_in: 3600 })();
        return request.headers.get("Authorization") === accepted ? json(200, {})() : json(401, { code: "unauthenticated" })();
      },
    ],
    { clientId: "id", clientSecret: "secret", scopes: ["orders:read"] },
  );
  const both = await Promise.all([get(client), post(client)]);
  assert.deepEqual([both[0].response.status, both[1].response.status, made], [200, 200, 1]);
  assert.equal(requests[0].request.headers.get("Authorization"), `Basic ${btoa("id:secret")}`);
  assert.equal(requests[0].body, "grant_type=client_credentials&scope=orders%3Aread");
  accepted = "Bearer 2";
  const later = await Promise.all([get(client), post(client)]);
  assert.deepEqual([later[0].response.status, later[1].response.status, made], [200, 200, 2]);
  accepted = "none";
  assert.equal((await get(client)).response.status, 401);
  assert.equal(made, 3);
});

test("an application that is refused a token hears why", async (t) => {
  const { client } = inTurn(t, [json(401, { error: "invalid_client", error_description: "unknown client" })], { clientId: "id", clientSecret: "s" });
  await assert.rejects(get(client), (error) => error instanceof ServiceError && error.status === 401 && error.message === "unknown client");
});

test("credentials are sent", async (t) => {
  for (const [options, key, authorization] of [
    [{ apiKey: "cis_live_x" }, "cis_live_x", null],
    [{ token: "y" }, null, "Bearer y"],
    [{}, null, null],
  ]) {
    const { client, requests } = inTurn(t, [json(200, {})], options);
    await get(client);
    const { headers } = requests[0].request;
    assert.deepEqual([headers.get("X-API-Key"), headers.get("Authorization")], [key, authorization]);
  }
});

test("a walk goes to the next page, and ends with an error", async (t) => {
  const link = '<https://x/p?page=1>; rel="first", <https://x/p?limit=2&status=PENDING%2CPAID&page=2>; rel="next"';
  const first = json(200, { data: [{ id: "1" }, { id: "2" }] }, { Link: link });
  const walk = async (second) => {
    const { client, requests } = inTurn(t, [first, second]);
    const found = [];
    const walked = (async () => {
      for await (const { id } of all(client, "/api/orders", { query: { status: ["PENDING", "COMPLETED"] } })) found.push(id);
    })();
    return { walked, found, queries: () => requests.map(({ request }) => new URL(request.url).search) };
  };
  const whole = await walk(json(200, { data: [{ id: "3" }] }));
  await whole.walked;
  assert.deepEqual(whole.found, ["1", "2", "3"]);
  assert.deepEqual(whole.queries(), ["?limit=100&status=PENDING,COMPLETED", "?limit=2&status=PENDING%2CPAID&page=2"]);
  const refused = await walk(json(403, { code: "insufficient_scope", message: "it lacks orders:read" }));
  await assert.rejects(refused.walked, (error) => error instanceof ServiceError && error.status === 403 && error.message === "it lacks orders:read");
  assert.deepEqual(refused.found, ["1", "2"]);
});

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const body = '{"type":"order.paid","data":{"object":{"orderNumber":"A-1001"}}}';

function delivery(text = body, at = new Date(), by = secret) {
  return {
    "webhook-id": "msg",
    "webhook-timestamp": `${Math.floor(at.getTime() / 1000)}`,
    "webhook-signature": new Webhook(by).sign("msg", at, text),
  };
}

test("a delivery is the event of its type", () => {
  for (const headers of [delivery(), new Headers(delivery()), { ...delivery(), "webhook-signature": `v2,x ${delivery()["webhook-signature"]}` }]) {
    assert.deepEqual(parseDelivery(secret, headers, body), JSON.parse(body));
  }
});

for (const [name, headers, text = body, by = secret] of [
  ["a changed body", delivery(), `${body} `],
  ["another secret", delivery(), body, "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"],
  ["an empty secret", delivery(), body, "whsec_"],
  ["no headers", {}],
  ["a signature without a text", { ...delivery(), "webhook-signature": "v1," }],
  ["another id", { ...delivery(), "webhook-id": "other" }],
  ["a timestamp of no number", { ...delivery(), "webhook-timestamp": "now" }],
  ["an old timestamp", delivery(body, new Date(Date.now() - 360_000))],
  ["one of the future", delivery(body, new Date(Date.now() + 360_000))],
  ["no JSON", delivery("{"), "{"],
]) {
  test(`a delivery that cannot be trusted is refused: ${name}`, () => {
    assert.throws(() => parseDelivery(by, headers, text));
  });
}
