// Runs the package and its README's program against the service that the file
// COMMERCE_RUN describes, as .local/run.json of `make run` does.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { all, createClient, firstId, ServiceError } from "@commerce-integration/client";

const root = fileURLToPath(new URL("../", import.meta.url));
const skip = !process.env.COMMERCE_RUN && "COMMERCE_RUN names no running service";
const run = skip ? {} : JSON.parse(readFileSync(process.env.COMMERCE_RUN, "utf8"));
const application = () => createClient({ baseUrl: run.baseUrl, clientId: run.clientId, clientSecret: run.clientSecret });

test("every way through a list finds the same", { skip }, async () => {
  const client = application();
  const { data } = await client.GET("/api/products", { params: { query: { limit: 1 } } });
  assert.ok(data.meta.total > 0);
  for (const query of [undefined, { limit: 2, orderBy: "name" }, { limit: 2, afterId: firstId }]) {
    const found = new Set();
    for await (const { id } of all(client, "/api/products", { query })) found.add(id);
    assert.equal(found.size, data.meta.total);
  }
  const refused = all(client, "/api/products", { query: { limit: 101 } }).next();
  await assert.rejects(refused, (error) => error instanceof ServiceError && error.problem.code === "validation_failed" && error.problem.details.length === 1);
});

test("the README's program reads orders and webhooks", { skip }, async (t) => {
  // Within the package, so that the program finds it by its name.
  const folder = mkdtempSync(join(root, ".readme-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const program = /```ts\n([^]*?)```/.exec(readFileSync(join(root, "README.md"), "utf8"))[1];
  writeFileSync(join(folder, "main.ts"), program);
  copyFileSync(join(root, "test/types.ts"), join(folder, "types.ts"));
  const settings = ["--strict", "--skipLibCheck", "--module", "nodenext", "--target", "es2022", "--types", "node"];
  execFileSync(join(root, "node_modules/.bin/tsc"), [...settings, join(folder, "main.ts"), join(folder, "types.ts")], { cwd: root, stdio: "inherit" });

  const user = createClient({ baseUrl: run.baseUrl, token: run.jwt });
  const port = await freePort();
  const { data: endpoint, error } = await user.POST("/developers/webhooks/endpoints", {
    params: { query: { applicationId: run.applicationId } },
    body: { url: `http://127.0.0.1:${port}/webhooks`, events: ["order.*"] },
  });
  assert.ok(endpoint, JSON.stringify(error));
  const path = { id: endpoint.id };
  t.after(() => user.DELETE("/developers/webhooks/endpoints/{id}", { params: { path } }));

  const child = spawn(process.execPath, [join(folder, "main.js")], {
    env: { ...process.env, COMMERCE_URL: run.baseUrl, CLIENT_ID: run.clientId, CLIENT_SECRET: run.clientSecret, WEBHOOK_SECRET: endpoint.secret, PORT: port },
    stdio: ["ignore", "pipe", "inherit"],
  });
  t.after(() => child.kill());
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const printed = async () => (await lines.next()).value;
  for await (const order of all(application(), "/api/orders", { query: { paymentStatus: ["PAID"], orderBy: "placedAt" } })) {
    assert.equal(await printed(), `${order.orderNumber} ${order.total} ${order.currency}`);
  }
  while (!(await listens(port))) assert.equal(child.exitCode, null);
  await user.POST("/developers/webhooks/endpoints/{id}/test", { params: { path }, body: { type: "order.paid" } });
  assert.match(await printed(), /^order\.paid \S+$/);
});

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}

const listens = (port) =>
  new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.on("connect", () => resolve(true)).on("error", () => setTimeout(resolve, 10, false));
    socket.on("connect", () => socket.destroy());
  });
