// Chromium, and what all tests hold its pages to.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

function executable() {
  if (process.env.CHROMIUM) return process.env.CHROMIUM;
  for (const name of ["chromium", "chromium-browser", "google-chrome"]) {
    try {
      return execFileSync("which", [name], { encoding: "utf8" }).trim();
    } catch {
      // the next one
    }
  }
  throw new Error("there is no Chromium: install it (on Debian the package chromium), or name it in CHROMIUM");
}

export const startBrowser = (...args) => chromium.launch({ executablePath: executable(), args: ["--no-sandbox", ...args] });

// pace is how often pages poll in tests: five times as often as for people, so that tests wait less.
export const pace = 1000;

// openPage opens a page that may only speak to the service, or also to the provider
// that people sign in at, and may complain of nothing; close holds it to that.
export async function openPage(browser, url, { theme = "light", width = 1280, provider = url, javaScriptEnabled = true } = {}) {
  const context = await browser.newContext({ javaScriptEnabled, colorScheme: theme, viewport: { width, height: 800 }, reducedMotion: "reduce", permissions: ["clipboard-read", "clipboard-write"] });
  await context.addInitScript((pace) => {
    const later = setTimeout;
    globalThis.setTimeout = (run, time) => later(run, time === 5000 ? pace : time);
  }, pace);
  const page = await context.newPage();
  page.setDefaultTimeout(60_000);
  const wrong = [];
  page.on("request", (request) => request.url().startsWith(url) || request.url().startsWith(provider) || wrong.push(`asked ${request.url()}`));
  page.on("pageerror", (error) => wrong.push(error.stack));
  // A refused request is a line in the console, too; the tests look at what the page says of it.
  page.on("console", (line) => line.type() === "error" && !line.text().startsWith("Failed to load resource") && wrong.push(line.text()));
  return {
    page,
    async close() {
      await context.close();
      assert.deepEqual(wrong, []);
    },
  };
}

// findings are what axe finds on the page as it is.
export async function findings(page) {
  // The policy of the page permits no script but its own; the debugger's are not the page's.
  // Only what it finds is sent from the page: not the script's own value, and not what is in order.
  await page.evaluate(`${axe};0`);
  const violations = await page.evaluate(() => globalThis.axe.run({ resultTypes: ["violations"] }).then((found) => found.violations));
  return violations.flatMap((v) => v.nodes.map((n) => `${v.id}: ${n.target} ${n.failureSummary}`));
}
