// What do the stories share? Chromium, a person who is signed in, and a way to ask for things.
import { ok } from "node:assert/strict";
import { once } from "node:events";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const packages = createRequire(process.env.CONSOLE_PACKAGES);
const { chromium } = packages("playwright-core");
const axe = packages.resolve("axe-core/axe.min.js");

/** Where the console is. */
export const address = `${process.env.CONSOLE_ADDRESS}/console`;
export const clientId = process.env.CLIENT_ID;
export const clientSecret = process.env.CLIENT_SECRET;

const executables = ["/usr/bin/chromium", "/usr/bin/chromium-browser"];

/** What pages may load from: the service, and the identity provider of the story that has one. */
const origins = [process.env.CONSOLE_ADDRESS, process.env.IDENTITY_PROVIDER].filter(Boolean);

/** Tells a story on a page; whatever the page loads or logs besides is a fault. */
export async function story(tell, options = {}) {
  const browser = await launched();
  const context = await browser.newContext({
    locale: "en-GB",
    timezoneId: "UTC",
    ...options,
  });
  context.setDefaultTimeout(30_000);
  const page = await context.newPage();
  const faults = [];
  page.on("console", (message) => {
    // What the service refuses is logged by the browser, too; the story looks at it.
    const isRefusal = message.text().startsWith("Failed to load resource");
    if (["error", "warning"].includes(message.type()) && !isRefusal) faults.push(message.text());
  });
  page.on("pageerror", (error) => faults.push(String(error)));
  page.on("request", (request) => {
    const isExpected = origins.some((origin) => request.url().startsWith(`${origin}/`));
    if (!isExpected) faults.push(request.url());
  });
  try {
    await tell(page);
    ok(faults.length === 0, faults.join("\n"));
  } catch (error) {
    console.error(`at ${page.url()}:\n${await page.innerText("body").catch(() => "")}`);
    throw error;
  } finally {
    await browser.close();
  }
}

async function launched() {
  for (const executablePath of executables) {
    const browser = await chromium
      .launch({
        executablePath,
        args: ["--no-sandbox", "--disable-dev-shm-usage"],
      })
      .catch((error) => error);
    if (!(browser instanceof Error)) return browser;
    if (!/exist|ENOENT/.test(browser.message)) throw browser;
  }
  throw new Error("cargo xtask prepare installs Chromium");
}

/** Signs in as the person of the story. */
export async function signIn(page, path = "") {
  await page.goto(address + path);
  await page.getByLabel("Client id").fill(clientId);
  await page.getByLabel("Client secret").fill(clientSecret);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("navigation", { name: "Views", exact: true }).waitFor();
}

/** The operator signs in. */
export async function operatorSignsIn(page) {
  await page.goto(address);
  await page.getByLabel("Operator").check();
  await page.getByLabel("Operator token").fill(process.env.OPERATOR_TOKEN);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("navigation", { name: "Views", exact: true }).waitFor();
}

/** Asks the test for something. */
export function wish(what) {
  console.log(what);
}

/** Asks the test for something and waits until it is done. */
export async function wishAndWait(what) {
  const lines = createInterface({ input: process.stdin });
  console.log(what);
  await once(lines, "line");
  lines.close();
}

/** Fails if the view is hard to use for people with disabilities, by the rules of axe. */
export async function expectAccessible(page, view) {
  // The policy of the page forbids scripts of others; this one comes by the debugger's way.
  await page.evaluate(await source());
  const { violations } = await page.evaluate(() => globalThis.axe.run());
  const serious = violations.filter(({ impact }) => ["serious", "critical"].includes(impact));
  const shown = serious.map(({ id, help, nodes }) => {
    return `${id}: ${help}\n  ${nodes.map((node) => node.html + node.failureSummary).join("\n  ")}`;
  });
  ok(serious.length === 0, `${view}:\n${shown.join("\n")}`);
}

async function source() {
  const { readFile } = await import("node:fs/promises");
  return readFile(axe, "utf8");
}
