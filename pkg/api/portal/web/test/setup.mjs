// What the tests of a file use together: a service of their own, and Chromium.
import { after, before } from "node:test";
import { startBrowser } from "./browser.mjs";
import { startService } from "./service.mjs";

export let service, browser;

before(async () => {
  service = await startService();
  browser = await startBrowser();
});

after(async () => {
  await browser?.close();
  await service?.stop();
});
