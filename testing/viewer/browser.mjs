// Drives real Chromium through the pages of `agentd view`: what a person does, pictures of
// every page, and checks that a machine can make. Run by crates/agentd/tests/it/viewer.
//
//   node browser.mjs <address with token> <chromium> <directory for pictures> <project>

import { createRequire } from "node:module";
import { appendFileSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import assert from "node:assert/strict";

const [address, executablePath, pictures, project] = process.argv.slice(2);
const require = createRequire(join(process.env.AGENTD_NPM_VIEWER, "package.json"));
const { chromium } = require("playwright-core");

const origin = new URL(address).origin;
const base = `${origin}/changes/add-oauth`;
const profile = mkdtempSync(join(tmpdir(), "agentd-chromium-"));
const context = await chromium.launchPersistentContext(profile, {
  executablePath,
  headless: true,
  args: [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
  ],
  viewport: { width: 1360, height: 900 },
  colorScheme: "light",
});

const wrong = [];
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
// Set while a page is meant to have something to complain about.
let expected = null;
const watch = (page) => {
  page.on("console", (message) => {
    if (expected?.test(message.text())) return;
    if (["error", "warning"].includes(message.type())) wrong.push(`console on ${page.url()}: ${message.text()}`);
  });
  page.on("pageerror", (error) => wrong.push(`an error on ${page.url()}: ${error}`));
  page.on("dialog", (dialog) => { wrong.push(`a dialog: ${dialog.message()}`); dialog.dismiss(); });
};
const page = await context.newPage();
watch(page);

const shot = (name) => page.screenshot({ path: join(pictures, `${name}.png`), fullPage: true });

// The contrast of every text on the page against what is behind it, as WCAG reckons it.
const contrasts = () => page.evaluate(() => {
  const parse = (color) => {
    const [r, g, b, a = 1] = color.match(/[\d.]+/g).map(Number);
    return { r, g, b, a };
  };
  const over = (top, under) => ({
    r: top.r * top.a + under.r * (1 - top.a), g: top.g * top.a + under.g * (1 - top.a),
    b: top.b * top.a + under.b * (1 - top.a), a: 1,
  });
  const light = ({ r, g, b }) => {
    const [x, y, z] = [r, g, b].map((v) => {
      v /= 255;
      return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const behind = (element) => {
    const layers = [];
    for (let at = element; at; at = at.parentElement) {
      // The box of a task in the graph is drawn before its words.
      const node = at.closest?.("a.node");
      const box = at === node ? at.querySelector("rect") : null;
      const color = parse(box ? getComputedStyle(box).fill : getComputedStyle(at).backgroundColor);
      if (color.a > 0) layers.push(color);
      if (color.a === 1) break;
    }
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    let color = dark ? { r: 18, g: 18, b: 18, a: 1 } : { r: 255, g: 255, b: 255, a: 1 };
    for (const layer of layers.reverse()) color = over(layer, color);
    return color;
  };
  const low = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode.data.trim();
    const element = walker.currentNode.parentElement;
    if (!text || !element.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true })) continue;
    if (element.closest(".visually-hidden, .skip, title, script, dialog:not([open])")) continue;
    // Pictures of emoji have colors of their own; disabled controls are exempt (WCAG 1.4.3).
    if (/^\p{Extended_Pictographic}+$/u.test(text) || element.closest(":disabled")) continue;
    const style = getComputedStyle(element);
    const svg = element.closest("svg");
    const color = over(parse(svg ? style.fill : style.color), behind(element));
    const [a, b] = [light(color), light(behind(element))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) low.push(`${ratio.toFixed(2)} ${JSON.stringify(text.slice(0, 40))} in <${element.tagName} class="${element.getAttribute("class")}">`);
  }
  return low;
});

// Every control that can be used with a mouse is reached with the Tab key.
const reachable = async () => {
  const count = await page.evaluate(() => {
    const all = [...document.querySelectorAll("a[href], button, input:not([type=hidden]), textarea, summary, [tabindex='0']")]
      .filter((control) => !control.disabled && control.checkVisibility() && !control.closest("dialog:not([open])"))
      .filter((control) => !(control.matches("input[type=checkbox]") && control.disabled));
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

// ---- in: the token goes out of the address
await page.goto(address);
assert.equal(page.url(), `${origin}/`);
assert.equal(await page.evaluate(() => document.cookie), "", "no script reads the cookie");

// ---- every page: pictures, contrast, keyboard, in light, dark, and on a phone
const pages = {
  home: "/", overview: "/changes/add-oauth", proposal: "/changes/add-oauth/proposal",
  spec: "/changes/add-oauth/specs/auth-flow", tasks: "/changes/add-oauth/tasks",
  clarifications: "/changes/add-oauth/clarifications", reviews: "/changes/add-oauth/reviews",
  changes: "/changes/add-oauth/changes?from=1&to=2", trace: "/changes/add-oauth/trace",
  runs: "/changes/add-oauth/runs", run: "/changes/add-oauth/runs/0001-challenge.jsonl",
  comments: "/changes/add-oauth/comments", source: "/changes/add-oauth/tasks?view=source",
  "main-spec": "/specs/session-store", archived: "/archive/2026-10-01-add-passwords",
};
const look = async (name, path) => {
  await page.goto(origin + path);
  for (const box of await page.locator(".diagram .box").all()) await box.locator("img").waitFor();
  await shot(name);
  for (const low of await contrasts()) wrong.push(`contrast on ${name}: ${low}`);
};
for (const [name, path] of Object.entries(pages)) {
  await look(name, path);
  for (const control of await reachable()) wrong.push(`${name}: no way to ${control}`);
}
await page.emulateMedia({ colorScheme: "dark" });
for (const name of Object.keys(pages)) await look(`${name}-dark`, pages[name]);
await page.emulateMedia({ colorScheme: "light" });
await page.setViewportSize({ width: 390, height: 844 });
for (const name of Object.keys(pages)) {
  await look(`${name}-phone`, pages[name]);
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  if (wide > 1) wrong.push(`${name} is ${wide} px wider than a phone`);
}
await page.setViewportSize({ width: 1360, height: 900 });

// ---- a diagram is really drawn
await page.goto(`${base}/specs/auth-flow`);
const image = page.locator(".diagram img");
await image.waitFor();
const drawn = await image.evaluate(async (img) => { await img.decode(); return [img.naturalWidth, img.naturalHeight, decodeURIComponent(img.src)]; });
assert.ok(drawn[0] > 300 && drawn[1] > 300, `the diagram is ${drawn[0]} x ${drawn[1]}`);
assert.ok(drawn[2].includes("Provider") && drawn[2].includes("session cookie"), "it says what its source says");

// ---- Mermaid with bad intentions: drawn or refused, but inert
const spec = join(project, "agentd/changes/add-oauth/specs/auth-flow.md");
const before = readFileSync(spec, "utf8");
const evil = [
  'graph TD\n  A["<img src=x onerror=alert(1)>"] --> B\n  click A href "javascript:alert(1)"\n  click B call alert(1)',
  'sequenceDiagram\n  A->>B: <script>alert(1)</script>',
  '%%{init: {"securityLevel": "loose", "themeCSS": "*{background:url(http://evil.example/x)}"}}%%\ngraph TD\n  A["<iframe src=http://evil.example>"]',
  'graph TD\n  A@{ img: "http://evil.example/x.png" }',
  "not a diagram at all <script>alert(1)</script>",
];
expected = /Content Security Policy/;
writeFileSync(spec, before + evil.map((text) => `\n\`\`\`mermaid\n${text}\n\`\`\`\n`).join(""));
await page.goto(`${base}/specs/auth-flow`);
await page.waitForFunction(() => document.querySelectorAll(".diagram .box:not([aria-busy])").length === 6);
await page.waitForTimeout(300);
assert.equal(await page.locator("main script, main iframe, main object").count(), 0);
await shot("evil-diagrams");
await page.goto("about:blank");
expected = null;
writeFileSync(spec, before);

// ---- a comment, by keyboard alone
await page.goto(`${base}/specs/auth-flow`);
await page.locator("button[data-at=R1]").focus();
await page.keyboard.press("Enter");
await page.locator("#comment-form textarea").waitFor();
await shot("comment-form");
await page.keyboard.type("Which clock?");
await page.keyboard.press("Tab");
await page.keyboard.press("Enter");
await page.waitForURL(/specs\/auth-flow/);
await page.locator(".comment", { hasText: "Which clock?" }).waitFor();
await shot("commented");
await page.locator(".comment button", { hasText: "Resolve" }).click();
await page.locator(".comment.resolved").waitFor();
await page.locator(".comment button", { hasText: "Open again" }).click();
await page.locator(".comment:not(.resolved)").waitFor();
// Escape closes the form again.
await page.locator("button[data-at=R2]").click();
await page.keyboard.press("Escape");
assert.equal(await page.locator("#comment-form[open]").count(), 0);

// ---- the filter
await page.goto(origin);
await page.keyboard.press("/");
await page.keyboard.type("dark");
assert.equal(await page.locator(".card:visible").count(), 1);

// ---- the board is live: who reads it keeps place, focus and filter, and nothing jumps
const changes = join(project, "agentd/changes");
const write = (change, file, text) => {
  mkdirSync(join(changes, change), { recursive: true });
  writeFileSync(join(changes, change, file), text);
};
const edit = (change, file, from, to) => {
  const text = readFileSync(join(changes, change, file), "utf8");
  assert.ok(text.includes(from), `${file} of ${change} has ${from}`);
  write(change, file, text.replace(from, to));
};
for (let n = 10; n < 90; n += 1) write(`filler-${n}`, "proposal.md", `# Change: filler-${n}\n\n## Summary\n\nFiller ${n}\n`);
await page.goto(origin);
const reading = page.locator(".card[data-id=filler-40] > a");
await reading.focus();
await reading.evaluate((link) => {
  link.scrollIntoView({ block: "center" });
  window.__card = document.querySelector(".card[data-id=filler-41]");
});
const where = () => page.evaluate(() => [
  document.activeElement.getAttribute("href"),
  Math.round(document.querySelector(".card[data-id=filler-40]").getBoundingClientRect().top),
  window.__card.isConnected,
]);
// Cards get their sizes when they come near.
await page.waitForTimeout(300);
const place = await where();
assert.equal(place[0], "/changes/filler-40");
const stays = async () => {
  const [focus, top, same] = await where();
  assert.deepEqual([focus, same], [place[0], true]);
  assert.ok(Math.abs(top - place[1]) <= 2, `it was at ${place[1]} and is at ${top}`);
};
assert.ok(await page.evaluate(() => scrollY > 0), "it is scrolled");
const waited = [];
const soon = async (selector, happens, text) => {
  const begun = Date.now();
  happens();
  await page.locator(selector, text ? { hasText: text } : {}).waitFor({ state: "attached" });
  waited.push(Date.now() - begun);
};
// One goes to another column, one is new, one goes, and the one that has the focus changes.
await soon(".column[data-column=Complete] .card[data-id=export-reports]", () => edit("export-reports", "STATE.yaml", "phase: implementing", "phase: complete"));
await stays();
assert.equal(await page.locator(".column[data-column=Implementing]").count(), 0);
assert.equal(await page.locator(".column[data-column=Complete] .count").textContent(), "2");
await soon(".column[data-column=Planning] .card:first-child[data-id=brand-new]", () => write("brand-new", "proposal.md", "# Change: brand-new\n"));
await stays();
await soon("[data-live=totals]", () => rmSync(join(changes, "filler-11"), { recursive: true }), "86 changes open");
assert.equal(await page.locator(".card[data-id=filler-11]").count(), 0);
await stays();
await soon(".card[data-id=filler-40]", () => edit("filler-40", "proposal.md", "Filler 40", "Something else"), "Something else");
await stays();
await page.screenshot({ path: join(pictures, "board-live.png") });
// A tick elsewhere: the filter stays, what is typed stays, and nothing shifts.
await page.keyboard.press("/");
await page.keyboard.type("speed");
assert.equal(await page.locator(".card:visible").count(), 1);
const countShifts = () => page.evaluate(() => {
  window.__shifts = 0;
  new PerformanceObserver((list) => { for (const entry of list.getEntries()) window.__shifts += entry.value; }).observe({ type: "layout-shift", buffered: false });
});
// What the filter itself moves is drawn first.
await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
await countShifts();
await soon(".card[data-id=speed-up-search]", () => edit("speed-up-search", "tasks.md", "status: pending", "status: done"), "3/6");
await soon(".card[data-id=later]", () => write("later", "proposal.md", "# Change: later\n"));
assert.equal(await page.locator(".card:visible").count(), 1);
assert.deepEqual(await page.evaluate(() => [document.activeElement.id, document.activeElement.value]), ["filter", "speed"]);
assert.equal(await page.evaluate(() => window.__shifts), 0, "no layout shift on the board");
await page.keyboard.press("Control+a");
await page.keyboard.press("Delete");
assert.equal(await page.locator(".card:visible").count(), 87);
for (const name of readdirSync(changes)) if (/^(filler-|brand-new|later)/.test(name)) rmSync(join(changes, name), { recursive: true });
waited.sort((a, b) => a - b);

// ---- live: a run that starts elsewhere; the page does not jump
await page.goto(base);
await page.locator("#log").waitFor();
const run = join(project, "agentd/changes/add-oauth/runs/0002-reproposal.jsonl");
writeFileSync(run, JSON.stringify({ run: 1, step: "reproposal", change: "add-oauth", agent: "gemini", role: "planner", attempt: 1, argv: [], env: [], cwd: "/p", prompt: "", started_at: "2026-11-15T20:00:00Z" }) + "\n");
await page.locator("#log .step", { hasText: "reproposal" }).waitFor();
const layout = () => page.evaluate(() => [...document.querySelectorAll(".content > *")].map((part) => Math.round(part.getBoundingClientRect().top + scrollY)));
const [tops, took] = [await layout(), []];
await countShifts();
for (let n = 0; n < 12; n += 1) {
  const begun = Date.now();
  appendFileSync(run, JSON.stringify({ t: n, event: "text", text: `word-${n} <b>is</b> text `, delta: true }) + "\n");
  await page.waitForFunction((n) => document.querySelector("#log").textContent.includes(`word-${n} `), n, { polling: 5 });
  took.push(Date.now() - begun);
}
appendFileSync(run, JSON.stringify({ t: 50, event: "tool_call", id: "1", server: "agentd", name: "edit_file", arguments: { path: "tasks.md" } }) + "\n");
await page.locator("#log summary code", { hasText: "agentd.edit_file" }).waitFor();
took.sort((a, b) => a - b);
assert.ok(took[6] < 300, `a line takes ${took} ms`);
assert.deepEqual(await layout(), tops, "nothing has moved");
assert.equal(await page.evaluate(() => window.__shifts), 0, "no layout shift");
assert.equal(await page.locator("#log b").count(), 0);
await shot("live");
// A task that is ticked elsewhere shows without a reload.
const tasks = join(project, "agentd/changes/add-oauth/tasks.md");
writeFileSync(tasks, readFileSync(tasks, "utf8").replace("status: pending", "status: done"));
await page.locator(".change-head", { hasText: "3/6" }).waitFor();

// ---- a decision
await page.locator("input[name=note]").fill("see I2");
await page.locator("button[value=fix]").click();
await page.locator(".decided", { hasText: "changes requested" }).waitFor();
await shot("decided");

// ---- without the cookie: nothing
const stranger = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-background-networking"] });
const other = await stranger.newPage();
const refused = await other.goto(base);
assert.equal(refused.status(), 401);
assert.ok(!(await other.content()).includes("company account"));
await stranger.close();

await context.close();
rmSync(profile, { recursive: true, force: true });
if (wrong.length > 0) process.exit(1);
console.log(`${Object.keys(pages).length} pages in three forms; a line is on the page after ${took[6]} ms (median), ${took.at(-1)} ms (worst), a change of the board after ${waited[3]} ms (median), ${waited.at(-1)} ms (worst)`);
