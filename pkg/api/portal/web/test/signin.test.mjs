// Signs in at an identity provider, the one that make run starts.
import assert from "node:assert/strict";
import { test } from "node:test";
import { findings, openPage } from "./browser.mjs";
import { browser, service } from "./setup.mjs";

const heading = (page, name) => page.getByRole("heading", { level: 1, name }).waitFor();
const click = (page, name) => page.getByRole("button", { name, exact: true }).click();
const open = (options) => openPage(browser, service.url, { provider: service.info.issuer, ...options });
const account = "Sign in with your account";

async function signIn(page, path = "", user = "Owner of the tea shop") {
  await page.goto(`${service.url}/portal#/${path}`);
  await click(page, account);
  await click(page, user);
}

// edit changes what the tab keeps of its session.
const edit = (page, change) =>
  page.evaluate((to) => sessionStorage.setItem("session", JSON.stringify({ ...JSON.parse(sessionStorage.getItem("session")), ...to })), change);

// askedSilently waits until the page goes to the provider, where nobody is asked anything.
const askedSilently = (page) => page.waitForRequest((r) => r.url().includes("prompt=none"));

// tokenRequests are the grants that the page asks tokens for.
function tokenRequests(page) {
  const grants = [];
  page.on("request", (r) => r.url() === `${service.info.issuer}/token` && grants.push(new URLSearchParams(r.postData()).get("grant_type")));
  return grants;
}

for (const width of [1280, 390]) {
  test(`a colleague's link leads through the sign-in to its page, at ${width} px`, async () => {
    const { page, close } = await open({ width });
    await page.goto(`${service.url}/portal#/records/products?search=assam`);
    await page.getByRole("button", { name: account }).waitFor();
    assert.deepEqual(await findings(page), []);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "scrolls sideways");
    if (process.env.SHOTS) await page.screenshot({ path: `${process.env.SHOTS}/signin-${width}.png` });
    await click(page, account);
    await heading(page, "Sign in as a demo user");
    assert.deepEqual(await findings(page), []);
    if (process.env.SHOTS) await page.screenshot({ path: `${process.env.SHOTS}/provider-${width}.png` });
    await click(page, "Viewer of the tea shop");
    await page.getByRole("link", { name: "Assam 250 g" }).waitFor();
    assert.equal(page.url(), `${service.url}/portal#/records/products?search=assam`);
    await page.reload();
    await page.getByRole("link", { name: "Assam 250 g" }).waitFor();
    await close();
  });
}

test("an application's request is still there after the sign-in", async () => {
  const { page, close } = await open();
  const asked = `${service.url}/portal/authorize?client_id=${service.info.clientId}&redirect_uri=x`;
  await page.goto(asked);
  await click(page, account);
  await click(page, "Viewer of the tea shop");
  await heading(page, "An application asks for access");
  await page.getByText("the application has no redirectUri").waitFor();
  assert.equal(page.url(), asked);
  await close();
});

test("the bearer is the access token, and a user sees the own organization alone", async () => {
  const { page, close } = await open();
  const sent = [];
  page.on("request", (r) => r.url().includes("/api/") && sent.push(r.headers().authorization));
  await signIn(page, "records/products", "Developer of an empty shop");
  await page.getByText("There are no products yet.").waitFor();
  const claims = JSON.parse(Buffer.from(sent.at(-1).split(".")[1], "base64url"));
  assert.deepEqual([claims.aud, claims.roles], ["commerce", ["DEVELOPER"]]);
  assert.notEqual(claims.organizationId, service.info.organizationId);

  // Whom the service refuses is not signed in as the same user again.
  await edit(page, { token: "nonsense" });
  await page.reload();
  await page.getByText("the bearer token is not a JWT").waitFor();
  await click(page, account);
  await heading(page, "Sign in as a demo user");
  await close();
});

test("a cancelled sign-in is said, and the page asks again", async () => {
  const { page, close } = await open();
  await signIn(page, "changes", "Cancel");
  await page.getByText("The sign-in was cancelled").waitFor();
  assert.equal(page.url(), `${service.url}/portal#/changes`);
  assert.deepEqual(await findings(page), []);
  await click(page, account);
  await click(page, "Owner of the tea shop");
  await heading(page, "Changes");
  await close();
});

test("a token is renewed before it ends: by the refresh token, else at the provider, else by the user", async () => {
  const { page, close } = await open();
  await signIn(page, "records/orders");
  await heading(page, "Orders");
  const grants = tokenRequests(page);
  await page.clock.setFixedTime(Date.now() + 59.5 * 60_000);
  await page.reload();
  await heading(page, "Orders");
  assert.deepEqual(grants, ["refresh_token"]);

  await edit(page, { renew: 0, refresh: "used up" });
  await Promise.all([askedSilently(page), page.reload({ waitUntil: "commit" })]);
  await heading(page, "Orders");
  await edit(page, { renew: 0, refresh: undefined });
  await Promise.all([askedSilently(page), page.reload({ waitUntil: "commit" })]);
  await heading(page, "Orders");
  assert.deepEqual(grants, ["refresh_token", "refresh_token", "authorization_code", "authorization_code"]);

  await page.context().clearCookies();
  await edit(page, { renew: 0, refresh: undefined });
  await page.reload();
  await page.getByText("Your session has ended. Sign in again.").waitFor();
  assert.equal(await page.evaluate(() => sessionStorage.length), 0);
  await signIn(page, "records/orders");
  await heading(page, "Orders");
  await close();
});

test("nothing leads away from a form that is open", async () => {
  const { page, close } = await open();
  await signIn(page, "applications", "Owner of an empty shop");
  await click(page, "Create an application");
  await page.getByLabel("Name").fill("Kept");
  await edit(page, { renew: 0, refresh: undefined });
  await page.getByRole("dialog").getByRole("button", { name: "Create", exact: true }).click();
  await Promise.all([askedSilently(page), click(page, "I have kept it")]);
  await heading(page, "Kept");
  await close();
});

test("who signs out is signed out in all tabs and at the provider", async () => {
  const { page, close } = await open();
  await signIn(page);
  await heading(page, "Overview");
  const second = await page.context().newPage();
  await second.goto(`${service.url}/portal#/changes`);
  await click(second, account);
  await heading(second, "Changes"); // the provider knows the user
  const kept = await second.evaluate(() => sessionStorage.getItem("session"));

  await click(page, "Sign out");
  await second.getByText("You have signed out in another tab.").waitFor();
  await page.getByRole("button", { name: account }).waitFor();
  assert.equal(page.url(), `${service.url}/portal`);
  for (const tab of [page, second]) assert.equal(await tab.evaluate(() => sessionStorage.length), 0);
  // A tab that was asleep meanwhile finds out when it wakes, and its refresh token is worth nothing.
  await second.evaluate((text) => sessionStorage.setItem("session", text), kept);
  await second.reload();
  await second.getByRole("button", { name: account }).waitFor();
  const form = { grant_type: "refresh_token", client_id: "portal", refresh_token: JSON.parse(kept).refresh };
  assert.equal((await page.request.post(`${service.info.issuer}/token`, { form })).status(), 400);
  await click(page, account);
  await heading(page, "Sign in as a demo user");
  await close();
});

test("an answer that nobody asked for, or of another provider, signs nobody in", async () => {
  const { page, close } = await open();
  const grants = tokenRequests(page);
  await page.goto(`${service.url}/portal?code=stolen&state=made-up`);
  await page.getByText("This sign-in did not begin in this tab.").waitFor();
  assert.equal(page.url(), `${service.url}/portal`);
  const begun = async () => {
    await page.goto(`${service.url}/portal`);
    await click(page, account);
    await heading(page, "Sign in as a demo user");
    return new URL(page.url()).searchParams.get("state");
  };
  for (const answer of [
    async () => ({ code: "stolen", state: "made-up", iss: service.info.issuer }),
    async (state) => ({ code: "stolen", state, iss: "https://provider.example" }),
    async (state) => ({ code: "stolen", state }),
  ]) {
    await page.goto(`${service.url}/portal?${new URLSearchParams(await answer(await begun()))}`);
    await page.getByText(/^The sign-in failed: /).waitFor();
    assert.equal(page.url(), `${service.url}/portal`);
  }
  assert.deepEqual(grants, []);
  await close();
});

test("a provider that cannot be reached is said, and a link still signs in", async () => {
  const { page, close } = await open();
  await page.route(`${service.info.issuer}/**`, (route) => route.abort());
  await page.goto(`${service.url}/portal`);
  await click(page, account);
  await page.getByRole("alert").filter({ hasText: "your identity provider, cannot be reached" }).waitFor();
  await page.evaluate((token) => { location.hash = `token=${token}`; }, service.info.jwt);
  await heading(page, "Overview");
  await click(page, "Sign out");
  await page.getByRole("button", { name: account }).waitFor();
  await close();
});
