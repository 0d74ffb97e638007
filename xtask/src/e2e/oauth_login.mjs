// A person at a browser: `node oauth_login.mjs URL [deny]` opens a login page of oidc-provider in Chromium, logs in, consents (or
// denies), and prints the text of the page at which that ends. Run in the folder of the packages.

import { chromium } from "playwright-core";

const [url, answer] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath: process.env.E2E_CHROMIUM, args: ["--no-sandbox"] });
try {
  const page = await browser.newPage();
  page.setDefaultTimeout(30_000);
  await page.goto(url);
  if (answer === "deny") {
    await page.click("text=Cancel");
  } else {
    await page.fill("input[name=login]", "ada");
    await page.fill("input[name=password]", "any");
    await page.click("button[type=submit]");
    await page.waitForSelector("text=Authorize");
    await page.click("button[type=submit]");
  }
  await page.waitForURL(/callback/);
  console.log(await page.innerText("body"));
} finally {
  await browser.close();
}
