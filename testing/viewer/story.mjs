// A person takes a change from one sentence to the archive, in real Chromium and without a terminal. What the
// agents are told is read where a person reads it: in the prompt of a run. Run by
// crates/agentd/tests/it/viewer.
//
//   node story.mjs <story> <address with token> <chromium> <directory for pictures> <project>

import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import assert from "node:assert/strict";
import { accessibility, finish, origin, page, project, shot } from "./chromium.mjs";

const base = `${origin}/changes/add-login`;
const hold = process.env.AGENTD_TEST_HOLD;
const next = page.locator(".next");
const button = (name) => next.getByRole("button", { name, exact: true });
// Also where it is the tab that is shown: what is done next is done on the new page.
const tab = async (name) => {
  const loaded = page.waitForEvent("load");
  await page.locator(".tabs a", { hasText: name }).click();
  await loaded;
};

// The prompt of the last run of a step, found by clicking through the page.
const promptOf = async (step) => {
  await tab("Runs");
  await page.waitForURL(/\/runs$/);
  assert.match(await page.locator("table.runs tbody tr").last().innerText(), /claude claude-opus/);
  await page.locator("table.runs a", { hasText: new RegExp(`^${step}`) }).last().click();
  await page.waitForURL(/\/runs\/\d+-/);
  const prompt = page.locator("details.prompt");
  await prompt.locator("summary").click();
  return prompt.locator("pre").innerText();
};

// ---- a sentence becomes a change, with the answers to the questions of the planner
await page.locator("main").getByRole("link", { name: "New change" }).click();
await page.locator("#description").fill("Let people log in with their own words");
assert.equal(await page.locator("#change-id").inputValue(), "log-own-words", "a name is suggested");
await page.locator("#change-id").fill("add-login");
await page.locator("select[name=placement]").selectOption("in-place");
await page.getByRole("button", { name: "Ask me questions first" }).click();
await page.waitForURL(base);
await page.locator("form.questions").waitFor();
await page.getByRole("radio", { name: /Password/ }).check();
const where = page.locator("form.questions select[name=placement]");
assert.equal(await where.inputValue(), "in-place", "where to work was said already");
await shot("story-questions");
await button("Answer and plan").click();

// ---- "Request changes", and why: both are in the next prompt of the planner (D1)
const why = next.locator("textarea[name=note]");
await why.waitFor();
assert.ok(await next.locator("button[value=accept]").count() === 0, "two medium issues cannot be accepted");
await why.fill("Lock the account after XYZZY attempts");
// The page has followed: what was written is there without a reload.
await page.locator(".document", { hasText: "People want to come back" }).waitFor();
await shot("story-decide");
await button("Request changes").click();
await page.locator(".badge", { hasText: "plan: approved" }).waitFor();
const toPlanner = await promptOf("reproposal");
assert.ok(toPlanner.includes("Lock the account after XYZZY attempts"), toPlanner);
await shot("story-note-in-prompt");

// ---- it is implemented: started, followed while it works, stopped, and started again
await page.goto(base);
writeFileSync(hold, "");
const begun = Date.now();
await button("Implement").click();
await page.locator(".next.live").waitFor();
const live = Date.now() - begun;
await next.getByRole("link", { name: "Watch" }).click();
await page.waitForURL(/\/runs#live$/);
await page.locator("#log .step", { hasText: "implement-logic" }).waitFor();
// The code is on its page as it is written.
await tab("Code");
await page.locator("details.file", { hasText: "login.rs" }).waitFor();
await shot("story-running");
await accessibility("story-running");
await button("Stop").click();
await page.locator(".next:not(.live)").waitFor();
rmSync(hold);
await shot("story-stopped");
await button("Implement").click();
await page.locator(".badge", { hasText: "code: approved" }).waitFor();
await button("Archive").waitFor();

// ---- a line of the code is commented on: the comment is in the prompt of the next fix
await tab("Code");
await page.waitForURL(/\/code$/);
await page.locator("a.number[href*='login.rs']").first().click();
await page.keyboard.type("Name this number, PLUGH");
await page.keyboard.press("Control+Enter");
await page.locator(".code-diff .thread", { hasText: "Name this number, PLUGH" }).waitFor();
await shot("story-code-comment");
// It works until it was seen at work: on a loaded machine, it would have ended before the page has asked.
writeFileSync(hold, "");
await button("Fix the code").click();
await page.locator(".next.live").waitFor();
rmSync(hold);
await page.locator(".next:not(.live)").waitFor();
const toImplementer = await promptOf("fix");
assert.ok(toImplementer.includes("Name this number, PLUGH"), toImplementer);
await shot("story-comment-in-prompt");

// ---- reviewed again, and archived after a look at what that does
await page.goto(base);
await button("Review the code").click();
await button("Archive").waitFor();
await next.getByRole("link", { name: "Preview" }).click();
await page.locator("h2", { hasText: "What archiving changes" }).waitFor();
await shot("story-archive-preview");
await page.locator("main").getByRole("button", { name: "Archive", exact: true }).last().click();
// Where it was leads to where it is.
await page.waitForURL(/\/archive\/[0-9-]+-add-login$/);
assert.ok(readFileSync(join(project, "agentd/specs/auth-flow.md"), "utf8").includes("answer 200 within 2 s"));
await shot("story-archived");

await finish(`from one sentence to the archive in Chromium; a run was live after ${live} ms`);
