// Shows a portal session in a frame of a page of another site.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { once } from "node:events";
import { after, before, test } from "node:test";
import { findings, openPage } from "./browser.mjs";
import { browser, service } from "./setup.mjs";

let saas, saasURL;

before(async () => {
  // 127.0.0.1 and localhost are different sites: the browser lets the frame store nothing.
  saas = createServer((request, response) => {
    const framed = decodeURIComponent(request.url.split("frame=")[1] ?? "").replaceAll("&", "&amp;");
    response.setHeader("Content-Type", "text/html");
    response.end(`<!doctype html><html lang="en"><title>SaaS</title><body style="margin:0"><iframe title="Webhooks" allow="clipboard-write" style="border:0;width:100%;height:95vh" src="${framed}"></iframe>`);
  }).listen(0, "localhost");
  await once(saas, "listening");
  saasURL = `http://localhost:${saas.address().port}/`;
});

after(() => saas.close());

const session = (more = {}) =>
  service.ask("/developers/portal-sessions", "POST", { applicationId: service.info.applicationId, scopes: ["webhooks:read", "webhooks:write"], expiresInMinutes: 60, ...more });
const revoke = ({ id }) => service.ask(`/developers/applications/${service.info.applicationId}/grants/${id}`, "DELETE");
const open = (options) => openPage(browser, service.url, { provider: saasURL, ...options });

// show has the SaaS show the address, and returns the frame.
async function show(page, url) {
  await page.goto(`${saasURL}?frame=${encodeURIComponent(url)}`);
  return page.frameLocator("iframe");
}

const heading = (frame, name) => frame.getByRole("heading", { level: 1, name }).waitFor();
const click = (frame, name) => frame.getByRole("button", { name, exact: true }).click();
const ended = (frame) => frame.getByText("Ask Tea shop to open it again.").waitFor();
const content = (page) => page.frames()[1];

for (const [width, theme] of [[1280, "light"], [390, "dark"]]) {
  test(`a customer makes an endpoint and tests it, at ${width} px`, async () => {
    const { page, close } = await open({ width, theme: theme === "dark" ? "light" : "dark" });
    const frame = await show(page, (await session({ theme })).url);
    await heading(frame, "Endpoints");
    assert.equal(content(page).url(), `${service.url}/portal/embed#/endpoints`);
    assert.deepEqual(await findings(content(page)), []);
    assert.equal(await content(page).evaluate(() => getComputedStyle(document.body).colorScheme), theme);
    const name = `Till of ${width} px`;
    await click(frame, "Create an endpoint");
    await frame.getByLabel("URL").fill(service.receiver.url);
    await frame.getByLabel("Description").fill(name);
    assert.deepEqual(await findings(content(page)), []);
    await click(frame, "Create");
    await click(frame, "Copy Signing secret");
    await frame.getByText("Copied").waitFor();
    await click(frame, "I have kept it");
    await heading(frame, name);
    await click(frame, "Send a test");
    await frame.getByRole("dialog").getByRole("button", { name: "Send", exact: true }).click();
    await frame.getByText(/answered 204, after/).waitFor();
    assert.deepEqual(await findings(content(page)), []);
    if (process.env.SHOTS) await page.screenshot({ path: `${process.env.SHOTS}/embed-${width}.png` });
    await frame.getByRole("link", { name: "Its deliveries" }).click();
    await frame.getByRole("link", { name: "webhook.test" }).first().click();
    await heading(frame, "webhook.test");
    await frame.getByRole("region", { name: "Payload as JSON" }).waitFor();
    assert.deepEqual(await findings(content(page)), []);
    assert.ok(await content(page).evaluate(() => document.documentElement.scrollWidth <= innerWidth), "scrolls sideways");
    await close();
  });
}

test("a session ends when its code comes again, when it is revoked, and with its page", async () => {
  const { page, close } = await open();
  const used = await session();
  await heading(await show(page, used.url), "Endpoints");
  await ended(await show(page, used.url)); // which ends the session, too

  const revoked = await session();
  const frame = await show(page, revoked.url);
  await heading(frame, "Endpoints");
  await frame.getByRole("link", { name: "Deliveries" }).click(); // which asks every five seconds
  await revoke(revoked);
  await ended(frame);
  assert.deepEqual(await findings(content(page)), []);

  const left = await show(page, (await session()).url);
  await heading(left, "Endpoints");
  await content(page).evaluate(() => location.reload());
  await ended(left);
  await close();
});

test("a session ends at its time", async () => {
  const { page, close } = await open();
  await page.clock.install();
  const frame = await show(page, (await session({ expiresInMinutes: 1 })).url);
  await heading(frame, "Endpoints");
  await page.clock.runFor(61_000);
  await ended(frame);
  await close();
});

test("nothing but a session is shown in a frame, and it leaves who is signed in alone", async () => {
  const { page, close } = await open();
  await page.goto(service.link);
  await heading(page, "Overview");
  const kept = await page.evaluate(() => JSON.stringify([{ ...sessionStorage }, { ...localStorage }]));
  // On the portal's own site the browser would share what it stores.
  await page.goto((await session()).url);
  await heading(page, "Endpoints");
  assert.equal(await page.getByRole("link", { name: "Applications" }).count(), 0);
  assert.equal(await page.evaluate(() => JSON.stringify([{ ...sessionStorage }, { ...localStorage }])), kept);
  await page.goto(`${service.url}/portal/embed`);
  await ended(page); // and does not take the portal's token
  await page.goto(`${service.url}/portal`);
  await heading(page, "Overview");
  await close();

  for (const path of ["/portal", "/portal/authorize", "/docs"]) {
    const context = await browser.newContext();
    const other = await context.newPage();
    const refused = other.waitForEvent("console", (line) => line.text().includes("frame-ancestors 'none'"));
    await show(other, service.url + path);
    await refused;
    await context.close();
  }
});
