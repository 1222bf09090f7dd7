// Real Chromium for the tests of `agentd view`: one page that is watched, pictures, and what a machine can
// check of any page.

import { createRequire } from "node:module";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import assert from "node:assert/strict";

export const [part, address, executablePath, pictures, project] = process.argv.slice(2);
const require = createRequire(join(process.env.AGENTD_NPM_VIEWER, "package.json"));
export const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

export const origin = new URL(address).origin;
const profile = mkdtempSync(join(tmpdir(), "agentd-chromium-"));
export const context = await chromium.launchPersistentContext(profile, {
  executablePath,
  headless: true,
  // axe-core is put into pages by this script; theirs is not loosened.
  args: [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
  ],
  viewport: { width: 1440, height: 900 },
  colorScheme: "light",
  permissions: ["notifications", "clipboard-read", "clipboard-write"],
});

// What has gone wrong; the test fails if anything is in it at the end.
export const wrong = [];
// Also when something else has gone wrong before.
process.on("exit", () => { if (wrong.length > 0) console.error([...new Set(wrong)].join("\n")); });
// What a policy stops never leaves the browser; everything else counts, failed or not.
const foreign = (request) => {
  const url = request.url();
  if (url.startsWith(origin) || url.startsWith("data:") || request.failure()?.errorText === "csp") return;
  wrong.push(`a request to ${url}`);
};
context.on("requestfinished", foreign);
context.on("requestfailed", foreign);
// What a page may complain about for now.
let expected = null;
export const expect = (pattern) => { expected = pattern; };
const watch = (page) => {
  page.on("console", (message) => {
    if (expected?.test(message.text())) return;
    if (["error", "warning"].includes(message.type())) wrong.push(`console on ${page.url()}: ${message.text()} (${message.location().url})`);
  });
  page.on("pageerror", (error) => wrong.push(`an error on ${page.url()}: ${error}`));
  page.on("dialog", (dialog) => { wrong.push(`a dialog: ${dialog.message()}`); dialog.dismiss(); });
};
// A shared machine may stall for longer than half a minute.
context.setDefaultTimeout(60000);
export const page = await context.newPage();
watch(page);

export const shot = (name) => page.screenshot({ path: join(pictures, `${name}.png`), fullPage: true });

// What axe-core finds that is serious or critical. It runs in a world of its own, so that the policy
// of the page stays as it is.
const session = await context.newCDPSession(page);
export const accessibility = async (name) => {
  const { frameTree } = await session.send("Page.getFrameTree");
  const { executionContextId: contextId } = await session.send("Page.createIsolatedWorld", { frameId: frameTree.frame.id, worldName: "axe" });
  const evaluate = async (expression) => {
    const { result, exceptionDetails } = await session.send("Runtime.evaluate", { expression, contextId, awaitPromise: true, returnByValue: true });
    if (exceptionDetails) throw new Error(`axe on ${name}: ${exceptionDetails.exception?.description ?? exceptionDetails.text}`);
    return result.value;
  };
  await evaluate(`${axe}; 0`);
  const found = await evaluate(`axe.run({ exclude: ["iframe"] }, { iframes: false, rules: { "target-size": { enabled: true } } }).then(({ violations, passes }) => ({
    passes: passes.length,
    bad: violations.filter(({ impact, id }) => ["serious", "critical"].includes(impact) || id === "landmark-unique")
      .map(({ id, nodes }) => id + " " + nodes.length + "x " + nodes.slice(0, 3).map((node) => node.html.slice(0, 140) + " " + (node.any[0]?.message ?? "")).join(" | ")),
  }))`);
  assert.ok(found.passes > 10, `axe looked at ${name}`);
  for (const bad of found.bad) wrong.push(`axe on ${name}: ${bad}`);
};

// Every control that can be used with a mouse is reached with the Tab key.
export const reachable = async () => {
  const count = await page.evaluate(() => {
    const all = [...document.querySelectorAll("a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex='0']")]
      .filter((control) => !control.disabled && control.checkVisibility() && !control.closest("dialog:not([open])"))
      .filter((control) => !control.matches("input[type=radio]:not(:checked)"));
    window.__controls = new Set(all);
    document.activeElement?.blur();
    return all.length;
  });
  for (let presses = 0; presses < count + 20; presses += 1) {
    await page.keyboard.press("Tab");
    const left = await page.evaluate(() => { window.__controls.delete(document.activeElement); return window.__controls.size; });
    if (left === 0) return [];
  }
  return page.evaluate(() => [...window.__controls].map((control) => control.outerHTML.slice(0, 160)));
};

export const finish = async (says) => {
  await context.close();
  rmSync(profile, { recursive: true, force: true });
  if (wrong.length > 0) process.exit(1);
  console.log(says);
};

// ---- in: the token goes out of the address
await page.goto(address);
assert.equal(page.url(), `${origin}/`);
assert.equal(await page.evaluate(() => document.cookie), "", "no script reads the cookie");
