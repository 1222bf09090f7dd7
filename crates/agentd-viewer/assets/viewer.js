// The script of every page. Without it everything can still be read and sent; with it diagrams are
// drawn, forms are sent without leaving the page, running agents are followed, and something is
// said when a change waits for you.
"use strict";

const one = (selector, root = document) => root.querySelector(selector);
const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const make = (tag, properties, ...children) => {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
};

// ---- what this browser remembers; nothing if it does not let us
const memory = (storage) => ({
  get: (key) => { try { return storage().getItem(key); } catch { return null; } },
  set: (key, value) => {
    try {
      if (value) storage().setItem(key, value);
      else storage().removeItem(key);
    } catch { /* It is forgotten with the page. */ }
  },
});
const kept = memory(() => localStorage);
const drafts = memory(() => sessionStorage);

// For those who do not see what happens.
const say = (text) => { const place = one("#said"); if (place) place.textContent = text; };

// ---- times: "3 hours ago"; the exact time stays in the title
function showTimes(root = document) {
  const format = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
  const units = [["year", 31536000], ["month", 2592000], ["day", 86400], ["hour", 3600], ["minute", 60]];
  for (const time of all("time[datetime]:not(.elapsed)", root)) {
    const seconds = (Date.parse(time.dateTime) - Date.now()) / 1000;
    if (Number.isNaN(seconds)) continue;
    const [unit, size] = units.find(([, size]) => Math.abs(seconds) >= size) ?? ["second", 1];
    time.title ||= time.dateTime;
    time.textContent = unit === "second" ? "just now" : format.format(Math.trunc(seconds / size), unit);
  }
}

function countOn() {
  for (const time of all("time.elapsed")) {
    const seconds = Math.max(0, Math.floor((Date.now() - Number(time.dataset.since)) / 1000));
    const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
    const two = (number) => String(number).padStart(2, "0");
    const text = hours > 0 ? `${hours}:${two(minutes)}:${two(seconds % 60)}` : `${minutes}:${two(seconds % 60)}`;
    if (time.textContent !== text) time.textContent = text;
  }
}

// ---- diagrams: drawn in a frame without an origin, shown as an image
const isDark = () => {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
};
const diagrams = { jobs: new Map(), frame: null, ready: false };

const draw = (id) => diagrams.frame.contentWindow.postMessage(
  { id, text: diagrams.jobs.get(id).text, dark: isDark() }, "*");

const drawAgain = () => { if (diagrams.ready) for (const id of diagrams.jobs.keys()) draw(id); };

function drawDiagrams(root = document) {
  const sources = all("figure.diagram code.mermaid", root);
  if (sources.length === 0) return;
  for (const code of sources) {
    const figure = code.closest("figure");
    const text = code.textContent;
    const box = make("div", { className: "box" });
    box.setAttribute("aria-busy", "true");
    const details = make("details", {}, make("summary", { textContent: "Diagram source" }), ...figure.childNodes);
    figure.append(box, details);
    code.classList.remove("mermaid");
    const id = diagrams.jobs.size;
    diagrams.jobs.set(id, { text, box, details });
    if (diagrams.ready) draw(id);
  }
  if (diagrams.frame) return;
  const frame = make("iframe", { className: "offstage", title: "Diagrams", tabIndex: -1 });
  frame.setAttribute("sandbox", "allow-scripts");
  frame.setAttribute("aria-hidden", "true");
  frame.src = "/diagrams";
  diagrams.frame = frame;
  addEventListener("message", (event) => {
    if (event.source !== frame.contentWindow) return;
    if (event.data.ready) {
      diagrams.ready = true;
      drawAgain();
      return;
    }
    const job = diagrams.jobs.get(event.data.id);
    if (job) showDiagram(job, event.data);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAgain);
  document.body.append(frame);
}

function showDiagram({ box, details }, { svg, error }) {
  box.removeAttribute("aria-busy");
  const fail = (why) => {
    box.textContent = `Cannot draw this diagram: ${why}`;
    details.open = true;
  };
  if (typeof svg !== "string") return fail(error);
  const size = /viewBox="[-\d.]+ [-\d.]+ ([\d.]+) ([\d.]+)"/.exec(svg);
  const image = make("img", { alt: "Diagram; its source is below" });
  if (size) {
    image.width = Math.ceil(size[1]);
    image.height = Math.ceil(size[2]);
  }
  image.addEventListener("error", () => fail("the browser cannot show what was drawn"));
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  const zoom = make("button", { type: "button", className: "small zoom", textContent: "Full size" });
  zoom.setAttribute("aria-pressed", "false");
  zoom.addEventListener("click", () => zoom.setAttribute("aria-pressed", box.classList.toggle("full")));
  box.replaceChildren(image, zoom);
  // Only where something is lost by fitting it into the page.
  const fits = () => { zoom.hidden = image.width <= box.clientWidth; };
  fits();
  addEventListener("resize", fits);
}

// ---- forms: sent from here, so that the page stays where it is
const fieldsOf = (form) => all("textarea, input:not([type=hidden], [type=checkbox], [type=radio])", form);
const isTyped = (root) => fieldsOf(root).some((field) => field.value !== field.defaultValue);
const draftKey = (form, field) => `${location.pathname} ${form.dataset.draft} ${field.name}`;

function restoreDrafts(root = document) {
  for (const form of all("form[data-draft]", root)) {
    for (const field of fieldsOf(form)) {
      const draft = drafts.get(draftKey(form, field));
      if (draft === null) continue;
      // Saving a draft of a text that is not there anymore would undo what others have written.
      const isOld = form.dataset.seen && drafts.get(`${draftKey(form, field)} seen`) !== form.dataset.seen;
      if (isOld) showOldDraft(form, field, draft);
      else field.value = draft;
    }
  }
}

function showOldDraft(form, field, draft) {
  const old = make("details", { className: "alert mild old-draft" },
    make("summary", { textContent: "The text was changed since you wrote a draft. This is your draft:" }),
    make("pre", { textContent: draft, tabIndex: 0 }));
  const discard = make("button", { type: "button", className: "small", textContent: "Discard the draft" });
  discard.addEventListener("click", () => { keep(form, field, null); old.remove(); });
  old.append(discard);
  form.prepend(old);
}

const keep = (form, field, value) => {
  drafts.set(draftKey(form, field), value);
  drafts.set(`${draftKey(form, field)} seen`, value === null ? null : form.dataset.seen);
};

function keepDraft(form) {
  if (!form?.dataset.draft) return;
  for (const field of fieldsOf(form)) keep(form, field, field.value === field.defaultValue ? null : field.value);
}

function forgetDraft(form) {
  if (!form?.dataset.draft) return;
  for (const field of fieldsOf(form)) keep(form, field, null);
}

function complain(form, { error, hints = [] }) {
  one(".send-problem", form)?.remove();
  const place = make("div", { className: "alert send-problem" }, make("p", { textContent: error }));
  place.setAttribute("role", "alert");
  for (const hint of hints) place.append(make("p", { className: "hint", textContent: hint }));
  form.append(place);
}

// The page shows a draft of another text beside the one that is there.
function offerTextOfNow(form) {
  const link = make("a", { href: location.href.split("#")[0], textContent: "Show the text that is there now, with yours beside it" });
  one(".send-problem", form).append(make("p", {}, link));
}

async function send(form, button) {
  if (form.dataset.sending) return;
  form.dataset.sending = "1";
  one(".send-problem", form)?.remove();
  try {
    const body = new URLSearchParams(new FormData(form, button));
    const answer = await fetch(form.action, { method: "POST", body, headers: { accept: "application/json" } });
    const result = await answer.json().catch(() => ({ error: `The viewer answered ${answer.status}.` }));
    if (!answer.ok) {
      complain(form, result);
      if (answer.status === 409 && form.matches(".editor")) offerTextOfNow(form);
      return;
    }
    forgetDraft(form);
    sent(form, result.to);
  } catch {
    complain(form, { error: "The viewer does not answer. Is agentd view still running?" });
  } finally {
    delete form.dataset.sending;
  }
}

async function sent(form, to) {
  const target = new URL(to, location.href);
  const isElsewhere = form.matches(".editor, .new-change") || (form.matches(".run") && location.pathname.endsWith("/archive"));
  say("Saved");
  if (isElsewhere) {
    location.assign(target);
    return;
  }
  const part = form.closest("[data-live]");
  const again = form.closest(".thread")?.id;
  if (form.matches(".new-comment")) form.remove();
  else form.reset();
  await refresh(part);
  // What was just written, or where it was written.
  const made = target.hash.length > 1 ? document.getElementById(target.hash.slice(1)) : null;
  const place = made ?? document.getElementById(again ?? "");
  if (!place) return;
  const box = place.getBoundingClientRect();
  if (box.top < 60 || box.bottom > innerHeight) place.scrollIntoView({ block: "center" });
  place.tabIndex = -1;
  place.focus({ preventScroll: true });
}

function forms() {
  document.addEventListener("submit", (event) => {
    const form = event.target.closest("form[data-send]");
    if (!form) return;
    event.preventDefault();
    send(form, event.submitter);
  });
  document.addEventListener("input", (event) => {
    const form = event.target.closest("form");
    keepDraft(form);
    if (form?.dataset.check) checkSoon(form);
    if (form?.matches("[data-auto]")) filterSoon(form);
  });
  document.addEventListener("change", (event) => {
    const form = event.target.closest("form[data-auto]");
    if (form) filterNow(form);
  });
  document.addEventListener("click", (event) => forgetDraft(event.target.closest?.(".forget")?.closest("form")));
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    const form = event.target.closest?.("textarea")?.form;
    if (form) { event.preventDefault(); form.requestSubmit(one("button:not([type=button])", form)); }
  });
}

// ---- lists that follow what is typed, with all of it in the address
let filtering = 0;
const filterSoon = (form) => {
  clearTimeout(filtering);
  filtering = setTimeout(() => filterNow(form), 150);
};

function filterNow(form) {
  clearTimeout(filtering);
  const url = new URL(form.action);
  for (const [name, value] of new FormData(form)) if (value) url.searchParams.set(name, value);
  if (!one("[data-live]") || url.pathname !== location.pathname) {
    location.assign(url);
    return;
  }
  history.replaceState(null, "", url);
  refresh(document.body);
}

// ---- the editor says what is wrong while one types
let checking = 0;
function checkSoon(form) {
  clearTimeout(checking);
  checking = setTimeout(() => checkNow(form), 250);
}

async function checkNow(form) {
  const typed = form.elements.text.value;
  const body = new URLSearchParams(new FormData(form));
  const answer = await fetch(form.dataset.check, { method: "POST", body }).catch(() => null);
  if (!answer?.ok || form.elements.text.value !== typed) return;
  // Rendered by the server, with all text in it escaped.
  one(".checked", form).innerHTML = await answer.text();
}

// ---- comments: the form opens where it is wanted
let picked = null;

function openComment({ on, at, quote = "" }, place, button) {
  const template = one("#comment-template");
  if (!template) return;
  for (const other of all("form.new-comment")) if (other.closest("[data-comment]")) other.closest("[data-comment]").remove();
  const holder = make("div", { className: "margin" });
  holder.dataset.comment = `${on} ${at}`;
  holder.append(template.content.cloneNode(true));
  const form = one("form", holder);
  form.dataset.draft = `comment ${on} ${at}`;
  form.elements.on.value = on;
  form.elements.at.value = at;
  form.elements.quote.value = quote;
  one(".about-what", form).textContent = `Comment on ${[on, at].filter(Boolean).join(" ")}`;
  const words = one(".quote", form);
  words.hidden = !quote;
  words.textContent = quote ? `“${quote}”` : "";
  place.after(holder);
  restoreDrafts(holder);
  const close = () => { holder.remove(); button?.focus(); };
  const cancel = one(".cancel", form);
  cancel.hidden = false;
  cancel.addEventListener("click", close);
  form.addEventListener("keydown", (event) => { if (event.key === "Escape") close(); });
  form.elements.text.focus();
  holder.scrollIntoView({ block: "nearest" });
}

function comments() {
  document.addEventListener("click", (event) => {
    const button = event.target.closest?.(".add-comment");
    if (!button || !one("#comment-template") || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    const place = button.closest(".block, .diff-line, .source li, article.task, .tools, .filters") ?? button;
    const quote = button.hasAttribute("data-quote") ? one(".words", place)?.lastChild?.parentElement.textContent.replace(/^(removed|added): /, "") ?? "" : "";
    const { on, at } = button.dataset.on === undefined ? Object.fromEntries(new URL(button.href).searchParams) : button.dataset;
    openComment({ on, at, quote }, place, button);
  });
  const offer = make("button", { type: "button", className: "offer small primary", textContent: "Comment", hidden: true });
  document.body.append(offer);
  document.addEventListener("selectionchange", () => {
    const selection = getSelection();
    const words = selection.toString().trim();
    const anchor = selection.anchorNode?.parentElement;
    const block = anchor?.closest(".document[data-on] .block[data-line]");
    const inside = block && selection.focusNode && block.contains(selection.focusNode);
    offer.hidden = !words || !inside || words.length > 400 || !one("#comment-template");
    if (offer.hidden) return;
    picked = { on: block.closest("[data-on]").dataset.on, at: `line ${block.dataset.line}`, quote: words, block };
    const box = selection.getRangeAt(0).getBoundingClientRect();
    offer.style.setProperty("left", `${Math.max(8, Math.min(box.left + scrollX, innerWidth - 110))}px`);
    offer.style.setProperty("top", `${box.bottom + scrollY + 6}px`);
  });
  offer.addEventListener("click", () => {
    offer.hidden = true;
    openComment(picked, picked.block);
  });
}

// ---- live: what the agents do and write
const connection = (state) => {
  const mark = one("#connection");
  if (!mark) return;
  const words = { live: "live", waits: "reconnecting", ended: "viewer stopped" };
  mark.hidden = false;
  mark.className = `connection ${state}`;
  mark.textContent = words[state];
  mark.title = state === "ended" ? "Run agentd view again, and open the address that it prints" : "This page updates itself";
};

function follow() {
  const place = one("[data-follow]");
  if (!place) return;
  const log = one("#log");
  const isBoard = place.dataset.follow.startsWith("/live");
  const only = log?.dataset.only;
  let source = null;
  let last = null;
  let failures = 0;
  const start = () => {
    if (source) return;
    const url = new URL(place.dataset.follow, location.href);
    if (last) url.searchParams.set("after", last);
    source = new EventSource(url);
    source.addEventListener("open", () => {
      // What happened while there was no connection.
      if (failures > 0) refresh();
      failures = 0;
      connection("live");
    });
    source.addEventListener("error", () => {
      failures += 1;
      connection(failures > 3 || source.readyState === EventSource.CLOSED ? "ended" : "waits");
      if (source.readyState !== EventSource.CLOSED) return;
      stop();
      // The browser has given up; the viewer may come back.
      refresh();
      setTimeout(start, 3000);
    });
    source.addEventListener("run", (event) => {
      last = event.lastEventId;
      const { run, items } = JSON.parse(event.data);
      if (!log || (only && run !== only)) return;
      append(log, items);
      const name = one("#live-run");
      if (name) name.textContent = run;
      one("#live")?.classList.toggle("idle", log.lastElementChild?.classList.contains("end") ?? false);
    });
    source.addEventListener("documents", (event) => {
      last = event.lastEventId;
      refresh();
      if (isBoard) attend();
    });
    // The page itself says, or leads to, what became of it. A viewer that is still there may go on.
    source.addEventListener("gone", () => {
      stop();
      refresh();
      setTimeout(start, 3000);
    });
  };
  const stop = () => { source?.close(); source = null; };
  // Browsers allow six connections to a server: a hidden page closes its own.
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) return stop();
    start();
    refresh();
  });
  addEventListener("pagehide", stop);
  addEventListener("pageshow", start);
  if (log) log.scrollTop = log.scrollHeight;
  if (!document.hidden) start();
  // No event says that an agent has written code, and what differs takes longer to find out.
  if (one(".tabs a[aria-current][href$='/code']")) {
    setInterval(() => { if (!document.hidden && one(".next.live")) refresh(); }, 3000);
  }
}

const MOST_ITEMS = 3000;

function append(log, items) {
  const atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 40;
  for (const item of items) {
    // HTML is rendered by the server, with all text in it escaped.
    if (item.html !== undefined) {
      log.insertAdjacentHTML("beforeend", item.html);
    } else if (item.answer !== undefined) {
      const call = all("details[data-call]", log).findLast((details) => details.dataset.call === item.call);
      if (call) {
        call.insertAdjacentHTML("beforeend", item.answer);
        call.closest(".entry").classList.add(item.ok ? "good" : "bad");
      } else {
        log.insertAdjacentHTML("beforeend", item.alone);
      }
    } else {
      let text = log.lastElementChild;
      if (!text?.classList.contains("text")) {
        text = make("div", { className: "entry text" }, make("span", { className: "t" }), make("div", { className: "said" }));
        log.append(text);
      }
      one(".said", text).append(item.delta);
    }
  }
  while (log.childElementCount > MOST_ITEMS) log.firstElementChild.remove();
  if (atEnd) log.scrollTop = log.scrollHeight;
}

// Replaces the parts of the page that changed. A part in which somebody types stays as it is, unless
// it is the one from which they have just sent something.
const shown = new Map();
for (const part of all("[data-live]")) shown.set(part.dataset.live, part.innerHTML);
let refreshing = null;
let again = false;

// A click counts only where the press was: what is pressed is not replaced. And the page that somebody
// has asked for is not lost to loading this one again.
let pressed = false;
let leaving = false;
addEventListener("pointerdown", () => { pressed = true; }, true);
for (const end of ["pointerup", "pointercancel"]) {
  // The click comes after it.
  addEventListener(end, () => setTimeout(() => { pressed = false; }), true);
}
addEventListener("beforeunload", () => {
  leaving = true;
  // To save a file leaves no page.
  setTimeout(() => { leaving = false; refresh(); }, 5000);
});

async function released() {
  for (let waits = 0; pressed && waits < 100; waits += 1) await new Promise((done) => setTimeout(done, 20));
  pressed = false;
}

const isBusy = (part) => isTyped(part) || part.contains(document.activeElement?.closest("textarea, input, select"));

// Also who has just begun to, and whose first keys would be taken for others.
const isWriting = () => isTyped(document) || document.activeElement?.matches("textarea, input:not([type=checkbox], [type=radio])");

async function refresh(forced = null) {
  if (refreshing) {
    again = true;
    await refreshing;
    if (!forced) return;
  }
  refreshing = reload(forced);
  try {
    await refreshing;
  } finally {
    refreshing = null;
    // What changed in the meantime may be missing from the page that was just loaded.
    if (again) { again = false; refresh(); }
  }
}

async function reload(forced) {
  const answer = await fetch(location.href, { headers: { accept: "text/html" } }).catch(() => null);
  const text = answer?.ok ? await answer.text().catch(() => null) : "";
  await released();
  if (leaving || text === null) return;
  if (!answer?.ok) {
    if (answer?.status === 401) connection("ended");
    // It was discarded or renamed: the answer says what is known of that.
    if (answer?.status === 404 && !isWriting()) location.reload();
    return;
  }
  // A change that was archived is at another place now.
  if (answer.redirected) return location.assign(answer.url);
  const page = new DOMParser().parseFromString(text, "text/html");
  const freshOf = (part) => one(`[data-live="${part.dataset.live}"]`, page);
  // It is another page by now: the plan that was missing is written, or there is code to show.
  const parts = (root) => all("[data-live]", root).map((part) => part.dataset.live).join();
  if (parts(document) !== parts(page) && !isWriting()) return location.reload();
  for (const part of all("[data-live]")) {
    const fresh = freshOf(part);
    if (!fresh || fresh.innerHTML === shown.get(part.dataset.live)) continue;
    const isForced = forced && (part === forced || forced === document.body);
    if (!isForced && isBusy(part)) continue;
    replace(part, fresh);
  }
  // The stream goes on from where this page is.
  const focus = one("#filter");
  if (focus && document.activeElement === focus) focus.focus();
}

function replace(part, fresh) {
  shown.set(part.dataset.live, fresh.innerHTML);
  const open = new Map(all("details[id]", part).map((details) => [details.id, details.open]));
  const focused = part.contains(document.activeElement) ? document.activeElement : null;
  const link = focused?.getAttribute("href");
  const typed = all("form.new-comment", part).length > 0 ? one("[data-comment]", part) : null;
  const before = typed?.previousElementSibling?.dataset?.line;
  // What is in view does not move.
  const seen = all("[data-id], [id]", part).find((element) => element.getBoundingClientRect().bottom > 60);
  const key = seen && (seen.dataset.id ? `[data-id="${CSS.escape(seen.dataset.id)}"]` : `#${CSS.escape(seen.id)}`);
  const top = seen?.getBoundingClientRect().top;
  part.className = fresh.className;
  part.replaceChildren(...fresh.childNodes);
  for (const [id, isOpen] of open) {
    const details = document.getElementById(id);
    if (details) details.open = isOpen;
  }
  if (typed && before) one(`[data-line="${before}"]`, part)?.after(typed);
  const now = key && scrollY > 0 ? one(key, part) : null;
  if (now) scrollBy(0, now.getBoundingClientRect().top - top);
  if (link) one(`a[href="${CSS.escape(link)}"]`, part)?.focus({ preventScroll: true });
  prepare(part);
}

// ---- notices: what waits, has failed or has ended, in the title, the icon, and if allowed outside
const attention = { known: null, icon: null, title: null };

function badge(count) {
  const icon = one("#icon");
  attention.icon ??= icon?.href;
  attention.title ??= document.title;
  document.title = count > 0 ? `(${count}) ${attention.title}` : attention.title;
  if (!icon) return;
  const dot = "%3Ccircle cx='12' cy='4' r='4' fill='%23dc2626'/%3E%3C/svg%3E";
  icon.href = count > 0 ? attention.icon.replace(/%3C\/svg%3E$/, dot) : attention.icon;
}

async function attend() {
  const answer = await fetch("/attention").catch(() => null);
  if (!answer?.ok) return;
  const { waiting, running } = await answer.json();
  badge(waiting.length);
  const now = { waiting: new Map(waiting.map((it) => [`${it.id} ${it.kind} ${it.why}`, it])), running: new Set(running) };
  const before = attention.known;
  attention.known = now;
  if (!before) return;
  const told = new Set();
  for (const [key, it] of now.waiting) {
    if (before.waiting.has(key)) continue;
    told.add(it.id);
    notify(it.id, it.kind === "failed" ? `${it.id} failed` : `${it.id} waits for you`, it.why);
  }
  for (const id of before.running) if (!now.running.has(id) && !told.has(id)) notify(id, `${id} has ended`, "");
}

function notify(id, title, body) {
  say(title);
  if (kept.get("notices") !== "on" || !("Notification" in globalThis) || Notification.permission !== "granted") return;
  const notice = new Notification(title, { body, tag: `agentd ${id}` });
  notice.addEventListener("click", () => { focus(); location.assign(`/changes/${encodeURIComponent(id)}`); });
}

function notices() {
  const button = one("#notices");
  if (button && "Notification" in globalThis && Notification.permission !== "denied") {
    button.hidden = false;
    const show = () => button.setAttribute("aria-pressed", String(kept.get("notices") === "on" && Notification.permission === "granted"));
    show();
    button.addEventListener("click", async () => {
      const on = kept.get("notices") !== "on";
      if (on && Notification.permission !== "granted") await Notification.requestPermission();
      kept.set("notices", on && Notification.permission === "granted" ? "on" : null);
      show();
    });
  }
  if (!one("#notices")) return;
  attend();
  setInterval(attend, 5000);
}

// ---- settings, help and keys
function settings() {
  const help = one("#help");
  if (!help) return;
  const button = one("#help-button");
  button.hidden = false;
  button.addEventListener("click", () => help.showModal());
  const theme = one("#theme-setting");
  theme.value = kept.get("theme") ?? "";
  theme.addEventListener("change", () => {
    kept.set("theme", theme.value);
    if (theme.value) document.documentElement.dataset.theme = theme.value;
    else delete document.documentElement.dataset.theme;
    drawAgain();
  });
  const single = one("#keys-setting");
  single.checked = kept.get("keys") !== "off";
  single.addEventListener("change", () => kept.set("keys", single.checked ? null : "off"));
}

function step(forward) {
  const stops = all("[data-stop]").filter((stop) => stop.checkVisibility());
  if (stops.length === 0) return;
  const here = document.activeElement?.closest("[data-stop]") ?? document.activeElement;
  const at = stops.indexOf(here);
  const next = stops[forward ? Math.min(at + 1, stops.length - 1) : Math.max(at - 1, 0)];
  const target = next.matches("a, button, summary") ? next : one("summary, a", next.matches("details, tr") ? next : document.createElement("i")) ?? next;
  if (target === next && !next.matches("a, button")) next.tabIndex = -1;
  target.focus({ preventScroll: true });
  next.scrollIntoView({ block: "center" });
}

const here = (selector) => {
  const stop = document.activeElement?.closest("[data-stop]");
  return (stop && one(selector, stop)) ?? one(`main ${selector}`);
};

function keys() {
  const tabs = () => all(".tabs a");
  const actions = {
    "/": () => (one("#filter") ?? one(".search input"))?.focus(),
    s: () => one(".search input")?.focus(),
    j: () => step(true),
    k: () => step(false),
    c: () => here(".add-comment")?.click(),
    e: () => here(".edit-part, a[aria-keyshortcuts=e]")?.click(),
    n: () => all(".next button, .next a.button, .next textarea, .next summary").find((it) => it.checkVisibility())?.focus(),
    h: () => location.assign("/"),
    "?": () => one("#help")?.showModal(),
    1: () => tabs()[0]?.click(), 2: () => tabs()[1]?.click(), 3: () => tabs()[2]?.click(), 4: () => tabs()[3]?.click(),
  };
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest?.("input:not([type=checkbox]), textarea, select, dialog[open]");
    if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
    // Single keys can be switched off; the help stays.
    if (event.key !== "?" && kept.get("keys") === "off") return;
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  });
}

// ---- small things of single pages
function copies(root = document) {
  for (const button of all("button.copy", root)) {
    button.hidden = !navigator.clipboard;
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(button.dataset.copy);
      const before = button.firstChild.data;
      button.firstChild.data = "Copied";
      say("Copied");
      setTimeout(() => { button.firstChild.data = before; }, 1500);
    });
  }
}

// Files that were looked at; the mark goes when the file changes.
function viewed(root = document) {
  for (const file of all("details[data-viewed]", root)) {
    const label = one(".viewed", file);
    const box = one("input", label);
    const key = `viewed ${file.dataset.viewed}`;
    label.hidden = false;
    box.checked = kept.get(key) === "1";
    file.classList.toggle("is-viewed", box.checked);
    if (box.checked) file.open = false;
    box.addEventListener("change", () => {
      kept.set(key, box.checked ? "1" : null);
      file.classList.toggle("is-viewed", box.checked);
      if (box.checked) file.open = false;
    });
  }
}

function logFilter() {
  const filter = one(".log-filter");
  if (!filter) return;
  filter.hidden = false;
  filter.addEventListener("click", (event) => {
    const button = event.target.closest("[data-show]");
    if (!button) return;
    for (const other of all("[data-show]", filter)) other.setAttribute("aria-pressed", String(other === button));
    one("#log").dataset.filter = button.dataset.show;
  });
}

// What a task waits for, and what waits for it.
function graph(root = document) {
  for (const node of all(".graph .node", root)) {
    const light = (on) => {
      for (const edge of all(".edge", node.closest("svg"))) {
        const isOwn = edge.dataset.from === node.dataset.task || edge.dataset.to === node.dataset.task;
        edge.classList.toggle("lit", on && isOwn);
        if (!isOwn) continue;
        const other = edge.dataset.from === node.dataset.task ? edge.dataset.to : edge.dataset.from;
        one(`.node[data-task="${other}"]`, node.closest("svg"))?.classList.toggle("lit", on);
      }
    };
    for (const event of ["mouseenter", "focus"]) node.addEventListener(event, () => light(true));
    for (const event of ["mouseleave", "blur"]) node.addEventListener(event, () => light(false));
  }
}

// A name for a new change, from what is wanted, until somebody types one.
function suggestName() {
  const [wanted, name] = [one("#description"), one("#change-id")];
  if (!wanted || !name) return;
  let own = name.value !== "";
  name.addEventListener("input", () => { own = name.value !== ""; });
  const small = new Set(["a", "an", "the", "let", "people", "with", "their", "of", "to", "in", "on", "and", "or", "for", "that", "it", "is", "by"]);
  wanted.addEventListener("input", () => {
    if (own) return;
    const words = wanted.value.toLowerCase().normalize("NFD").match(/[a-z0-9]+/g) ?? [];
    name.value = words.filter((word) => !small.has(word) && !/^\d/.test(word)).slice(0, 4).join("-").slice(0, 40).replace(/-+$/, "");
  });
}

// A place that an address names may be inside something folded.
function showTarget() {
  const target = location.hash.length > 1 ? document.getElementById(decodeURIComponent(location.hash.slice(1))) : null;
  for (let at = target; at; at = at.parentElement) if (at.matches("details")) at.open = true;
  target?.scrollIntoView();
}

function prepare(root) {
  showTimes(root);
  drawDiagrams(root);
  restoreDrafts(root);
  copies(root);
  viewed(root);
  graph(root);
}

prepare(document);
forms();
comments();
follow();
notices();
settings();
keys();
logFilter();
suggestName();
showTarget();
// On a narrow screen, the current tab may be beyond the edge; the page itself stays where it is.
const tab = one(".tabs a[aria-current]");
if (tab) tab.parentElement.scrollLeft = tab.offsetLeft + tab.offsetWidth - tab.parentElement.offsetLeft - tab.parentElement.clientWidth;
addEventListener("hashchange", showTarget);
setInterval(countOn, 1000);
setInterval(showTimes, 30000);
