// Drives real Chromium through the pages of `agentd view`: what a person does, pictures of
// every page, and checks that a machine can make. Run by crates/agentd/tests/it/viewer.
//
//   node browser.mjs <look or act> <address with token> <chromium> <directory for pictures> <project>

import { appendFileSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import assert from "node:assert/strict";
import {
  accessibility, chromium, executablePath, expect, finish, origin, page, part, pictures, project, reachable, shot, wrong,
} from "./chromium.mjs";

const base = `${origin}/changes/add-oauth`;

// ---- every page: pictures, accessibility, keyboard; at three widths, in light and dark
const pages = {
  home: "/", board: "/?view=board", proposal: "/changes/add-oauth",
  spec: "/changes/add-oauth/specs/auth-flow", tasks: "/changes/add-oauth/tasks",
  clarifications: "/changes/add-oauth/clarifications", review: "/changes/add-oauth/review?show=all",
  changes: "/changes/add-oauth/specs/auth-flow?view=changes&from=1&to=2",
  "main-spec-changes": "/changes/add-oauth/specs/session-store?view=main",
  edit: "/changes/add-oauth/specs/auth-flow?view=edit&at=R1",
  conflicts: "/changes/with-code/specs/session-store?view=main",
  code: "/changes/with-code/code", runs: "/changes/add-oauth/runs", run: "/changes/add-oauth/runs/0001-challenge.jsonl",
  comments: "/changes/add-oauth/comments?on=proposal.md", source: "/changes/add-oauth/tasks?view=source",
  approved: "/changes/with-code", archive: "/archive", "archive-preview": "/changes/with-code/archive",
  specs: "/specs", "main-spec": "/specs/session-store?history=R1", archived: "/archive/2026-10-01-add-passwords",
  search: "/search?q=session", costs: "/costs", new: "/new",
};
// Rarer ones, in two forms.
const others = {
  questions: "/changes/asks-first", failed: "/changes/has-failed", "search-runs": "/search?q=scenario&in=runs",
  "not-found": "/nothing", "not-found-change": "/changes/nothing",
};
const look = async (name, path) => {
  const answer = await page.goto(origin + path);
  const status = path.endsWith("/nothing") ? 404 : 200;
  if (answer.status() !== status) wrong.push(`${name} is ${answer.status()}`);
  for (const box of await page.locator(".diagram .box").all()) await box.locator("img").waitFor();
  for (const folded of await page.locator("details.alert:not([open]) > summary").all()) await folded.click();
  await shot(name);
  await accessibility(name);
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  if (wide > 1) wrong.push(`${name} is ${wide} px wider than the window`);
};
if (part === "look") {
  for (const [width, scheme] of [[1440, "light"], [1440, "dark"], [768, "light"], [768, "dark"], [390, "light"], [390, "dark"]]) {
    await page.emulateMedia({ colorScheme: scheme });
    await page.setViewportSize({ width, height: width === 390 ? 844 : 900 });
    const isRare = width === 1440 && scheme === "light" || width === 390 && scheme === "dark";
    expect(isRare ? /404/ : null);
    for (const [name, path] of Object.entries({ ...pages, ...(isRare ? others : {}) })) {
      await look(`${name}-${width}-${scheme}`, path);
      if (width !== 1440 || scheme !== "light") continue;
      for (const control of await reachable()) wrong.push(`${name}: no way to ${control}`);
    }
  }
  await finish(`${Object.keys(pages).length} pages in six forms, nothing serious found by axe-core`);
  process.exit(0);
}

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
expect(/Content Security Policy/);
writeFileSync(spec, before + evil.map((text) => `\n\`\`\`mermaid\n${text}\n\`\`\`\n`).join(""));
await page.goto(`${base}/specs/auth-flow`);
await page.waitForFunction(() => document.querySelectorAll(".diagram .box:not([aria-busy])").length === 6);
await page.waitForTimeout(300);
assert.equal(await page.locator("main script, main iframe, main object").count(), 0);
await shot("evil-diagrams");
await page.goto("about:blank");
expect(null);
writeFileSync(spec, before);

// ---- a comment, by keyboard alone; the page stays where it is, and drafts stay at their place (D10)
await page.goto(`${base}/specs/auth-flow`);
await page.locator(".add-comment[data-at=R2]").focus();
await page.keyboard.press("Enter");
await page.keyboard.type("A draft that is left");
await page.keyboard.press("Escape");
assert.equal(await page.locator("form.new-comment").count(), 0, "Escape closes the form");
await page.locator(".add-comment[data-at=R1]").focus();
await page.keyboard.press("Enter");
assert.equal(await page.locator("form.new-comment textarea").inputValue(), "", "a draft of another place");
await page.keyboard.type("Which clock?");
await shot("comment-form");
const top = () => page.evaluate(() => Math.round(document.querySelector(".add-comment[data-at=R1]").getBoundingClientRect().top));
const at = await top();
await page.keyboard.press("Control+Enter");
const thread = page.locator(".thread", { hasText: "Which clock?" });
await thread.waitFor();
assert.ok(Math.abs(await top() - at) < 5, "the page has not moved");
assert.ok(await thread.evaluate((it) => it === document.activeElement), "the focus is on what was written");
await page.locator(".add-comment[data-at=R2]").click();
assert.equal(await page.locator("form.new-comment textarea").inputValue(), "A draft that is left");
await page.keyboard.press("Escape");
await shot("commented");
await thread.getByRole("button", { name: "Resolve" }).click();
await page.locator(".thread.resolved").waitFor();
await thread.getByRole("button", { name: "Open again" }).click();
await page.locator(".thread:not(.resolved)").waitFor();
await thread.locator(".thread-actions summary").click();
await thread.locator(".thread-actions textarea").fill("The one of the server.");
await thread.locator(".thread-actions").getByRole("button", { name: "Reply", exact: true }).click();
await page.locator(".thread .comment", { hasText: "The one of the server." }).waitFor();
// Words that are selected can be commented on.
await page.locator(".block.prose", { hasText: "MUST match accounts" }).first().evaluate((block) => {
  const text = document.createTreeWalker(block, NodeFilter.SHOW_TEXT).nextNode();
  const [range, from] = [document.createRange(), text.data.indexOf("match accounts")];
  range.setStart(text, from);
  range.setEnd(text, from + "match accounts".length);
  getSelection().removeAllRanges();
  getSelection().addRange(range);
});
await page.locator(".offer").click();
await page.keyboard.type("By what?");
await page.keyboard.press("Control+Enter");
await page.locator(".thread", { hasText: "By what?" }).locator(".quote", { hasText: "match accounts" }).waitFor();
// An empty one is refused beside the form, and nothing else happens.
await page.locator(".add-comment[data-at=R3]").click();
await page.evaluate(() => { const text = document.querySelector("form.new-comment textarea"); text.required = false; text.value = " "; });
expect(/400/);
await page.keyboard.press("Control+Enter");
await page.locator("form.new-comment .send-problem").waitFor();
expect(null);
await page.keyboard.press("Escape");

// ---- edit in place: checked while one types, refused when stale
await page.goto(`${base}/specs/auth-flow?view=edit&at=R3`);
const editor = page.locator("form.editor textarea");
const text = await editor.inputValue();
assert.match(text, /^### R3/);
await editor.fill("### R3: Nothing else\n");
await page.locator(".checked .findings li").first().waitFor();
await shot("edit-invalid");
await editor.fill(text.replace("5 seconds", "7 seconds"));
await page.locator(".checked .good").waitFor();
writeFileSync(spec, readFileSync(spec, "utf8").replace("within 5 seconds", "within 6 seconds"));
expect(/409/);
await page.getByRole("button", { name: "Save" }).click();
await page.locator(".send-problem", { hasText: "changed since you began" }).waitFor();
expect(null);
assert.ok((await editor.inputValue()).includes("7 seconds"), "what was typed stays");
await shot("edit-stale");
await page.locator(".send-problem a").click();
await page.locator(".old-draft pre", { hasText: "7 seconds" }).waitFor({ state: "attached" });
assert.ok((await editor.inputValue()).includes("6 seconds"), "the text of now, with the draft beside it");
await editor.fill(text.replace("5 seconds", "7 seconds"));
await page.getByRole("button", { name: "Save" }).click();
await page.waitForURL(`${base}/specs/auth-flow`);
assert.ok(readFileSync(spec, "utf8").includes("7 seconds"));
writeFileSync(spec, readFileSync(spec, "utf8").replace("within 7 seconds", "within 5 seconds"));
// A draft comes back, but not over what somebody else has written since; Cancel forgets it.
const drafting = `${base}/specs/auth-flow?view=edit&at=R3`;
await page.goto(drafting);
await editor.fill(text.replace("5 seconds", "8 seconds"));
await page.goto(drafting);
assert.ok((await editor.inputValue()).includes("8 seconds"), "a draft is kept");
writeFileSync(spec, readFileSync(spec, "utf8").replace("within 5 seconds", "within 6 seconds"));
await page.goto(drafting);
assert.ok((await editor.inputValue()).includes("6 seconds"), "the text of now is edited");
assert.ok((await page.locator(".old-draft pre").textContent()).includes("8 seconds"), "the old draft is shown");
await page.locator(".old-draft summary").click();
await shot("edit-old-draft");
await page.locator(".old-draft button").click();
await page.goto(drafting);
assert.equal(await page.locator(".old-draft").count(), 0, "and can be discarded");
await editor.fill("### R3: Something else\n");
await page.locator("form.editor a.forget").click();
await page.waitForURL(`${base}/specs/auth-flow`);
await page.goto(drafting);
assert.ok((await editor.inputValue()).includes("6 seconds"), "Cancel forgets what was typed");
writeFileSync(spec, readFileSync(spec, "utf8").replace("within 6 seconds", "within 5 seconds"));

// ---- a line of code is commented on
await page.goto(`${origin}/changes/with-code/code`);
await page.locator("a.number[href$='line%202']").first().click();
await page.keyboard.type("Why this line?");
await page.keyboard.press("Control+Enter");
await page.locator(".code-diff .thread", { hasText: "Why this line?" }).waitFor();
await page.locator(".viewed input").first().check();
assert.equal(await page.locator("details.file").first().evaluate((file) => file.open), false, "what was viewed is folded");
await page.reload();
assert.equal(await page.locator("details.file.is-viewed").count(), 1, "and stays so");
await shot("code-commented");

// All of it is commented on, beside what differs.
await page.locator(".filters .add-comment").click();
await page.keyboard.type("Is this all of it?");
await page.keyboard.press("Control+Enter");
await page.locator(".thread", { hasText: "Is this all of it?" }).waitFor();

// ---- what differs in a document reads like the document
await page.goto(`${base}/specs/auth-flow?view=changes&from=1&to=2`);
const heading = page.locator(".diff .words.heading").first();
assert.deepEqual(await heading.evaluate((it) => [getComputedStyle(it).fontWeight, getComputedStyle(it).display]), ["700", "block"]);

// ---- keys and help
await page.goto(`${base}/specs/auth-flow`);
await page.keyboard.press("?");
await page.locator("#help[open]").waitFor();
await accessibility("help");
await page.screenshot({ path: join(pictures, "help.png") });
await page.keyboard.press("Escape");
await page.keyboard.press("j");
await page.keyboard.press("j");
assert.equal(await page.evaluate(() => document.activeElement.closest("[data-stop]").id), "h-requirements");
await page.keyboard.press("c");
await page.locator("form.new-comment").waitFor();
await page.keyboard.press("Escape");
for (const [key, end] of [["2", "/review"], ["3", "/code"], ["4", "/runs"], ["1", "/add-oauth"]]) {
  await page.keyboard.press(key);
  await page.waitForURL((url) => url.pathname.endsWith(end));
}
await page.keyboard.press("n");
assert.ok(await page.evaluate(() => document.activeElement.closest(".next") !== null));
// Single keys can be switched off (WCAG 2.1.4).
await page.locator("#help-button").click();
await page.locator("#keys-setting").uncheck();
await page.locator("#theme-setting").selectOption("dark");
await page.keyboard.press("Escape");
await page.keyboard.press("h");
await page.waitForTimeout(100);
assert.equal(new URL(page.url()).pathname, "/changes/add-oauth");
assert.equal(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), "rgb(19, 20, 25)", "dark was chosen");
await page.evaluate(() => localStorage.clear());

// ---- the list: filters are in the address, and Back finds them (D9)
await page.goto(origin);
await page.keyboard.press("/");
await page.keyboard.type("dark");
await page.waitForFunction(() => document.querySelectorAll("tr[data-id]").length === 1);
assert.equal(new URL(page.url()).searchParams.get("q"), "dark");
assert.deepEqual(await page.evaluate(() => [document.activeElement.id, document.activeElement.value]), ["filter", "dark"]);
await page.locator("tr[data-id=dark-mode] a").click();
await page.waitForURL(/changes\/dark-mode/);
await page.goBack();
await page.waitForFunction(() => document.querySelectorAll("tr[data-id]").length === 1);
assert.equal(await page.locator("#filter").inputValue(), "dark");
await page.keyboard.press("/");
await page.locator("#filter").fill("zzzz");
await page.locator(".empty", { hasText: "Nothing found." }).waitFor();
await page.goto(`${origin}/search?q=still+has+no+scenario&in=runs`);
await page.locator(".hits a").first().click();
await page.waitForURL(/runs\/0001/);

// ---- the first page is live: who reads it keeps place, focus and filter
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
const reading = page.locator("tr[data-id=filler-40] a");
await reading.focus();
await reading.evaluate((link) => link.scrollIntoView({ block: "center" }));
const where = () => page.evaluate(() => [
  document.activeElement.getAttribute("href"),
  Math.round(document.querySelector("tr[data-id=filler-40]").getBoundingClientRect().top),
]);
const place = await where();
assert.equal(place[0], "/changes/filler-40");
const stays = async () => {
  const [focus, top] = await where();
  assert.equal(focus, place[0]);
  assert.ok(Math.abs(top - place[1]) <= 2, `it was at ${place[1]} and is at ${top}`);
};
assert.ok(await page.evaluate(() => scrollY > 0), "it is scrolled");
const waited = [];
const soon = async (selector, happens, text) => {
  const begun = Date.now();
  happens();
  await page.locator(selector, text ? { hasText: text } : {}).first().waitFor({ state: "attached" });
  waited.push(Date.now() - begun);
};
await soon("tr[data-id=brand-new]", () => write("brand-new", "proposal.md", "# Change: brand-new\n"));
await stays();
await soon("[data-live=totals]", () => rmSync(join(changes, "filler-11"), { recursive: true }), "90 changes open");
assert.equal(await page.locator("tr[data-id=filler-11]").count(), 0);
await stays();
await soon("tr[data-id=filler-40]", () => edit("filler-40", "proposal.md", "Filler 40", "Something else"), "Something else");
await stays();
await soon("tr[data-id=speed-up-search]", () => edit("speed-up-search", "tasks.md", "status: pending", "status: done"), "3/6");
await page.screenshot({ path: join(pictures, "home-live.png") });
// A click counts where it began, also when the list changes between the press and the release.
await page.locator("tr[data-id=filler-41] a").hover();
await page.mouse.down();
const changed = page.waitForResponse((answer) => new URL(answer.url()).pathname === "/");
edit("filler-42", "proposal.md", "Filler 42", "Something else");
await (await changed).finished();
await page.waitForTimeout(200);
await page.mouse.up();
await page.waitForURL(/changes\/filler-41$/);
// And a page that becomes another one does not keep those who are on their way out.
await page.locator("#connection.live").waitFor();
await page.route("**/filler-41/review", async (route) => {
  await new Promise((done) => setTimeout(done, 2000));
  await route.continue();
});
const left = page.waitForURL(/filler-41\/review$/);
await page.locator(".tabs a", { hasText: "Review" }).click({ noWaitAfter: true });
rmSync(join(changes, "filler-41/proposal.md"));
write("filler-41", "STATE.yaml", "change_id: filler-41\nphase: proposed\ncreated_at: 2026-11-10T09:00:00Z\nupdated_at: 2026-11-10T09:00:00Z\n");
await left;
await page.unroute("**/filler-41/review");
await page.goto(origin);
for (const name of readdirSync(changes)) if (/^(filler-|brand-new)/.test(name)) rmSync(join(changes, name), { recursive: true });
waited.sort((a, b) => a - b);

// ---- notices: the title says how many wait, and something new is said
await page.goto(origin);
await page.waitForFunction(() => /^\(\d+\) /.test(document.title));
assert.ok((await page.locator("#icon").getAttribute("href")).includes("%23dc2626"), "the icon has a dot");
await page.evaluate(() => {
  localStorage.setItem("notices", "on");
  window.__notices = [];
  window.Notification = class extends EventTarget {
    static permission = "granted";
    constructor(title, options) { super(); window.__notices.push([title, options.body]); }
  };
});
const state = join(changes, "dark-mode/STATE.yaml");
const was = readFileSync(state, "utf8");
rmSync(join(changes, "dark-mode"), { recursive: true });
await page.locator("tr[data-id=dark-mode]").waitFor({ state: "detached" });
await page.waitForTimeout(700);
write("dark-mode", "STATE.yaml", "phase: [");
await page.waitForFunction(() => window.__notices.some(([title]) => title === "dark-mode waits for you"));
writeFileSync(state, was);

// ---- live: a run that starts elsewhere; the page does not jump
await page.goto(`${base}/runs`);
await page.locator("#connection.live").waitFor();
const run = join(project, "agentd/changes/add-oauth/runs/0002-reproposal.jsonl");
writeFileSync(run, JSON.stringify({ run: 1, step: "reproposal", change: "add-oauth", agent: "gemini", role: "planner", attempt: 1, argv: [], env: [], cwd: "/p", prompt: "", started_at: "2026-11-15T20:00:00Z" }) + "\n");
await page.locator("#log .step", { hasText: "reproposal" }).waitFor();
const layout = () => page.evaluate(() => [...document.querySelectorAll(".content > *")].map((part) => Math.round(part.getBoundingClientRect().top + scrollY)));
const [tops, took] = [await layout(), []];
for (let n = 0; n < 12; n += 1) {
  const begun = Date.now();
  appendFileSync(run, JSON.stringify({ t: n, event: "text", text: `word-${n} <b>is</b> text `, delta: true }) + "\n");
  await page.waitForFunction((n) => document.querySelector("#log").textContent.includes(`word-${n} `), n, { polling: 5 });
  took.push(Date.now() - begun);
}
appendFileSync(run, JSON.stringify({ t: 50, event: "tool_call", id: "1", server: "agentd", name: "edit_file", arguments: { path: "tasks.md" } }) + "\n");
await page.locator("#log summary code", { hasText: "agentd.edit_file" }).waitFor();
appendFileSync(run, JSON.stringify({ t: 60, event: "tool_result", id: "1", ok: false, output: "<i>no</i> such text" }) + "\n");
await page.locator("#log .call.bad details pre", { hasText: "<i>no</i> such text" }).waitFor({ state: "attached" });
took.sort((a, b) => a - b);
assert.deepEqual(await layout(), tops, "nothing has moved");
assert.equal(await page.locator("#log b, #log i").count(), 0);
await shot("live");
// A task that is ticked elsewhere shows without a reload.
const tasks = join(project, "agentd/changes/add-oauth/tasks.md");
const ticks = readFileSync(tasks, "utf8");
writeFileSync(tasks, ticks.replace("status: pending", "status: done"));
await page.locator(".change-head", { hasText: "3/6" }).waitFor();
writeFileSync(tasks, ticks);
rmSync(run);

// ---- a decision
await page.goto(base);
await page.locator("textarea[name=note]").fill("see I2");
await page.locator("input[name=run]").uncheck();
await page.locator("button[value=fix]").click();
await page.locator(".decided", { hasText: "changes requested" }).waitFor();
await page.locator(".next .run button").waitFor();
assert.equal(await page.locator(".next button.primary").filter({ visible: true }).count(), 1, "one thing is next");
await shot("decided");

// ---- a run is started, followed and stopped
await page.goto(`${origin}/changes/runs-long`);
const start = page.locator(".next button[name=command]").first();
await start.waitFor();
const begun = Date.now();
await start.click();
await page.locator(".next.live").waitFor();
const live = Date.now() - begun;
await page.locator(".next.live time.elapsed").waitFor();
await shot("running");
await accessibility("running");
await page.locator(".next.live a.button").click();
await page.locator("#log .entry", { hasText: "I am working" }).waitFor();
await shot("watching");
await page.getByRole("button", { name: "Stop", exact: true }).click();
await page.locator(".next:not(.live)").waitFor();
await shot("stopped");
// It is said that it is over, also to those who look elsewhere.
await page.waitForFunction(() => /^runs-long (failed|has ended)$/.test(document.querySelector("#said").textContent));

// ---- a page without its stream says so, and that it is back
expect(/ERR_FAILED/);
await page.route("**/live?*", (route) => route.abort());
await page.goto(`${base}/runs`);
await page.locator("#connection.waits", { hasText: "reconnecting" }).waitFor();
await page.unroute("**/live?*");
await page.locator("#connection.live").waitFor();
expect(null);

// ---- what can be shared reads without a script and without the viewer
await page.goto(base);
const [download] = await Promise.all([page.waitForEvent("download"), page.evaluate(() => document.querySelector("a[download]").click())]);
const file = join(pictures, "export.html");
await download.saveAs(file);
const offline = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-background-networking"] });
const reader = await (await offline.newContext({ javaScriptEnabled: false, viewport: { width: 1440, height: 900 } })).newPage();
reader.on("console", (message) => { if (message.type() === "error") wrong.push(`console on the export: ${message.text()}`); });
await reader.goto(`file://${file}`);
assert.ok((await reader.content()).includes("Authorization with PKCE"));
await reader.screenshot({ path: join(pictures, "export.png"), fullPage: true });

// ---- without the cookie: nothing
const other = await offline.newPage();
const refused = await other.goto(base);
assert.equal(refused.status(), 401);
assert.ok(!(await other.content()).includes("company account"));
await offline.close();

await finish(`a line is on the page after ${took[6]} ms (median), ${took.at(-1)} ms (worst), a change of the list after ${waited[1]} ms (median), ${waited.at(-1)} ms (worst), a run that was started after ${live} ms`);
