// Verifies webhooks by the official JavaScript library. Each line of the
// standard input is {"secret", "header", "body"}; each line of the output is
// "good", or "bad: " and why the library refuses it.
const { Webhook, WebhookVerificationError } = require("standardwebhooks");

for (const line of require("fs").readFileSync(0, "utf8").trim().split("\n")) {
  const { secret, header, body } = JSON.parse(line);
  try {
    new Webhook(secret).verify(body, header);
    console.log("good");
  } catch (error) {
    console.log(error instanceof WebhookVerificationError ? `bad: ${error.message}` : `failed: ${error}`);
  }
}
