// Verifies webhooks by the official JavaScript library. Each line of the
// standard input is {"secret", "request"}, the request in base64 as it came
// over the wire; each line of the output is "good", or "bad: " and why the
// library refuses it.
const { Webhook, WebhookVerificationError } = require("standardwebhooks");

for (const line of require("fs").readFileSync(0, "utf8").trim().split("\n")) {
  const { secret, request } = JSON.parse(line);
  const raw = Buffer.from(request, "base64");
  const end = raw.indexOf("\r\n\r\n");
  const headers = {};
  for (const header of raw.subarray(0, end).toString("latin1").split("\r\n").slice(1)) {
    const colon = header.indexOf(":");
    headers[header.slice(0, colon).toLowerCase()] = header.slice(colon + 1).trim();
  }
  try {
    new Webhook(secret).verify(raw.subarray(end + 4), headers);
    console.log("good");
  } catch (error) {
    console.log(error instanceof WebhookVerificationError ? `bad: ${error.message}` : `failed: ${error}`);
  }
}
