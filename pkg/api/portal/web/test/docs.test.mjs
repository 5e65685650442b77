// Reads the documentation as people do, against a service of its own.
import assert from "node:assert/strict";
import { test } from "node:test";
import { findings, openPage } from "./browser.mjs";
import { browser, service } from "./setup.mjs";

async function reading(path, use, options) {
  const { page, close } = await openPage(browser, service.url, options);
  await page.goto(`${service.url}/docs${path}`);
  await use(page);
  await close();
}

const operations = (page) => page.locator(".opblock-summary-path").first().waitFor();
const open = (page, title) => page.getByRole("link", { name: title, exact: true }).first().click();

test("every page is there, light and small, dark and wide, leads nowhere that is none, and axe finds nothing", async (t) => {
  const pages = ["", "/reference"];
  await reading("", async (page) => {
    const links = await page.locator("nav a").evaluateAll((all) => all.map((a) => new URL(a.href).pathname.replace("/docs", "")));
    pages.push(...links.filter((path) => !pages.includes(path)));
  });
  assert.ok(pages.length > 10, pages);
  for (const [theme, width] of [["light", 380], ["dark", 1280]]) {
    for (const path of pages) {
      await t.test(`/docs${path}, ${theme}, ${width} px`, () =>
        reading(
          path,
          async (page) => {
            if (path === "/reference") await operations(page);
            if (process.env.SHOTS) await page.screenshot({ path: `${process.env.SHOTS}/docs${path.replace("/", "-")}-${theme}-${width}.png`, fullPage: path !== "/reference" });
            assert.deepEqual(await findings(page), []);
            assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "scrolls sideways");
            assert.equal(await page.locator("nav a[aria-current]").count(), path === "" ? 0 : 1);
            if (theme === "dark") await follow(page);
          },
          { theme, width },
        ),
      );
    }
  }
});

// follow asks for everything of the service that a page links to, and looks for
// the heading that the link names. Pages of the reference and of the portal are not in what the service answers.
async function follow(page) {
  const links = await page.locator("main a, .side-foot a").evaluateAll((all) => all.map((a) => a.href));
  for (const link of links.filter((l) => l.startsWith(service.url) && !/\/docs\/reference#|\/portal#/.test(l))) {
    const { pathname, hash } = new URL(link);
    const answer = await fetch(service.url + pathname);
    assert.equal(answer.status, 200, link);
    if (hash) assert.ok((await answer.text()).includes(`id="${hash.slice(1)}"`), link);
  }
}

test("the search finds sections of guides and operations", async () => {
  await reading("", async (page) => {
    const search = page.getByRole("searchbox", { name: "Search the documentation" });
    await search.fill("rotating secret");
    await open(page, "Rotating a secret");
    await page.waitForURL(`${service.url}/docs/deliveries#rotating-a-secret`);
    await search.fill("/api/deletions");
    await page.locator("#found a").first().click();
    await operations(page);
    assert.ok(page.url().includes("/docs/reference#/Deletions/"), page.url());
    await search.fill("no such words");
    await page.getByText("Nothing found.").waitFor();
    for (const [word, found] of [["pagination", "Lists"], ["paging", "Lists"], ["signature", "Verify"], ["rotation", "Rotating a secret"]]) {
      await search.fill(word);
      await page.locator("#found li:nth-child(-n+2)").getByText(found, { exact: true }).waitFor();
    }
    await page.locator("h1").click();
    await page.keyboard.press("/");
    await page.keyboard.press("ControlOrMeta+a");
    await page.keyboard.type("webhooks");
    await page.locator("#found a").first().waitFor();
    await page.keyboard.press("ArrowDown");
    assert.ok(await page.locator("#found a").first().evaluate((link) => link === document.activeElement));
    await page.keyboard.press("ArrowUp");
    assert.ok(await search.evaluate((field) => field === document.activeElement));
    assert.deepEqual(await findings(page), []);
  });
});

test("the reference asks the service with the key, which the tab keeps", async () => {
  await reading("/reference#/Products/listProducts", async (page) => {
    await page.getByRole("button", { name: "Authorize", exact: true }).click();
    await page.locator("#api_key_value").fill(service.info.apiKey);
    await page.locator(".auth-container", { has: page.locator("#api_key_value") }).getByRole("button", { name: "Apply credentials" }).click();
    await page.reload();
    const operation = page.locator("#operations-Products-listProducts");
    await operation.getByRole("button", { name: "Try it out" }).click();
    await operation.getByRole("button", { name: "Execute" }).click();
    await operation.locator(".live-responses-table").getByText("Assam 250 g").first().waitFor();
    assert.deepEqual(await findings(page), []);
    assert.equal(await page.evaluate(() => localStorage.length), 0);
  });
});

test("the portal's credential and colours hold in the documentation", async () => {
  const { page, close } = await openPage(browser, service.url);
  await page.goto(service.link);
  await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
  await page.getByLabel("Colours").selectOption("dark");
  const ground = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  await open(page, "Documentation");
  await page.getByRole("heading", { level: 1, name: "Commerce Integration Service" }).waitFor();
  assert.equal(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), ground);
  await open(page, "API reference");
  await operations(page);
  assert.ok((await page.evaluate(() => sessionStorage.getItem("authorized")))?.includes(service.info.jwt));
  await close();
});

test("a sample is copied by its button, as it stands", async () => {
  await reading("/webhooks", async (page) => {
    await page.getByRole("tab", { name: "Python" }).first().click();
    await page.locator(".sample", { hasText: "class Receiver" }).getByRole("button").click();
    await page.getByText("Copied").waitFor();
    assert.match(await page.evaluate(() => navigator.clipboard.readText()), /^# python3 receiver.py\nimport base64, .*\n/);
  });
});

test("every sample is in the language that was chosen last", async () => {
  const shown = (page) => page.locator(".languages pre:visible code").evaluateAll((all) => all.map((code) => code.className));
  await reading(
    "/first-integration",
    async (page) => {
      assert.deepEqual(await shown(page), Array(4).fill("language-sh"));
      const last = page.getByRole("tablist").last();
      await last.getByRole("tab", { name: "Python" }).click();
      const { y } = await last.boundingBox();
      await page.keyboard.press("ArrowLeft");
      await page.keyboard.press("ArrowLeft");
      assert.equal(await page.evaluate(() => document.activeElement.textContent), "PHP");
      await page.keyboard.press("ArrowLeft");
      assert.deepEqual(await shown(page), Array(4).fill("language-go"));
      assert.ok(Math.abs((await last.boundingBox()).y - y) < 2, "the chosen tab moves");
      assert.deepEqual(await findings(page), []);
      await page.goto(`${service.url}/docs/sync`);
      assert.deepEqual(await shown(page), Array(2).fill("language-go"));
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "scrolls sideways");
    },
    { width: 390 },
  );
  await reading("/sync", async (page) => assert.equal((await shown(page)).length, 10), { javaScriptEnabled: false });
});

test("/llms.txt lists the Markdown of each page", async () => {
  const text = await (await fetch(`${service.url}/llms.txt`)).text();
  assert.match(text, /^# Commerce Integration Service\n\n> /);
  const links = [...text.matchAll(/\]\((.+?)\)/g)].map((found) => found[1]);
  assert.ok(links.length > 10, text);
  for (const link of links.filter((to) => !to.endsWith("/openapi.json"))) {
    const answer = await fetch(link);
    assert.equal(answer.headers.get("Content-Type"), "text/markdown; charset=utf-8", link);
    assert.match(await answer.text(), /^# /, link);
  }
});
