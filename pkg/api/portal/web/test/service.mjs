// A service of its own for the tests, with a receiver of webhooks beside it.
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const root = fileURLToPath(new URL("../../../../../", import.meta.url));
const commerce = join(root, ".build/commerce");

async function listening(server) {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return server.address().port;
}

export async function startService() {
  const data = await mkdtemp(join(tmpdir(), "portal-"));
  const receiver = await startReceiver();
  const run = spawn(commerce, ["run", "--fresh", "--data", data, "--addr", "127.0.0.1:0"], { cwd: root });
  let said = "";
  run.stdout.on("data", (text) => (said += text));
  run.stderr.on("data", (text) => (said += text));
  const ended = once(run, "exit");
  while (!said.includes("Ctrl-C stops it.")) {
    if (run.exitCode !== null) throw new Error(said);
    await new Promise((later) => setTimeout(later, 50));
  }
  const info = JSON.parse(await readFile(join(data, "run.json"), "utf8"));
  const command = (...args) => promisify(execFile)(commerce, [...args, "--data", data], { cwd: root }).then(({ stdout }) => stdout.trim());

  return {
    info,
    receiver,
    link: /signed in: (\S+)/.exec(said)[1],
    url: info.baseUrl,
    // token is that of a user with the role.
    token: (role, organization = info.organizationId) => command("token", "--organization", organization, "--roles", role),
    // put has the back office send records.
    async put(...records) {
      const file = join(data, "records.jsonl");
      await writeFile(file, records.map((r) => JSON.stringify({ op: "put", ...r })).join("\n"));
      await command("import", "--events", file);
    },
    // send sends a message to the queue of records, whatever it is.
    async send(message) {
      const answer = await fetch(info.recordsQueueUrl, {
        method: "POST",
        headers: { "X-Amz-Target": "AmazonSQS.SendMessage", "Content-Type": "application/x-amz-json-1.0" },
        body: JSON.stringify({ QueueUrl: info.recordsQueueUrl, MessageBody: JSON.stringify(message) }),
      });
      if (!answer.ok) throw new Error(await answer.text());
    },
    // ask asks the API as the owner.
    async ask(path, method = "GET", body = undefined) {
      const answer = await fetch(info.baseUrl + path, {
        method,
        headers: { Authorization: `Bearer ${info.jwt}`, ...(body && { "Content-Type": "application/json" }) },
        body: body && JSON.stringify(body),
      });
      if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
      return answer.status === 204 ? undefined : answer.json();
    },
    async stop() {
      run.kill("SIGINT");
      await ended;
      receiver.server.close();
      await rm(data, { recursive: true, force: true });
    },
  };
}

// startReceiver answers webhooks: 204, or as long as it is down 500, and not before its gate is open.
// It keeps the last one.
async function startReceiver() {
  const receiver = { down: false };
  receiver.server = createServer((request, response) => {
    const chunks = [];
    request.on("data", (chunk) => chunks.push(chunk));
    request.on("end", async () => {
      receiver.last = { headers: request.headers, body: Buffer.concat(chunks).toString() };
      await receiver.gate;
      response.statusCode = receiver.down ? 500 : 204;
      response.end(receiver.down ? "my database is down" : undefined);
    });
  });
  receiver.url = `http://127.0.0.1:${await listening(receiver.server)}/`;
  return receiver;
}
