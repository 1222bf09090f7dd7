// The script of every page. Without it everything can still be read; with it diagrams are
// drawn, comments can be made, and running agents are followed.
"use strict";

const one = (selector, root = document) => root.querySelector(selector);
const all = (selector, root = document) => [...root.querySelectorAll(selector)];

// ---- times: "3 hours ago"; the exact time stays in the title
function showTimes(root = document) {
  const format = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
  const units = [["year", 31536000], ["month", 2592000], ["day", 86400], ["hour", 3600], ["minute", 60]];
  for (const time of all("time[datetime]", root)) {
    const seconds = (Date.parse(time.dateTime) - Date.now()) / 1000;
    if (Number.isNaN(seconds)) continue;
    const [unit, size] = units.find(([, size]) => Math.abs(seconds) >= size) ?? ["second", 1];
    time.title ||= time.dateTime;
    time.textContent = unit === "second" ? "just now" : format.format(Math.trunc(seconds / size), unit);
  }
}

// ---- the filter of the first page
function filterCards() {
  const words = one("#filter").value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const card of all(".card")) {
    // Only by the name of the change: its overlaps name other changes as well.
    const text = words.length > 0 ? one("a", card).textContent.toLowerCase() : "";
    card.hidden = !words.every((word) => text.includes(word));
  }
}

// ---- diagrams: drawn in a frame without an origin, shown as an image
function drawDiagrams(root = document) {
  const sources = all("figure.diagram code.mermaid", root);
  if (sources.length === 0) return;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  drawDiagrams.jobs ??= new Map();
  const jobs = drawDiagrams.jobs;
  const send = (id) => drawDiagrams.frame.contentWindow.postMessage(
    { id, text: jobs.get(id).text, dark: dark.matches }, "*");
  for (const code of sources) {
    const figure = code.closest("figure");
    const text = code.textContent;
    const box = document.createElement("div");
    box.className = "box";
    box.setAttribute("aria-busy", "true");
    const details = document.createElement("details");
    const summary = document.createElement("summary");
    summary.textContent = "Diagram source";
    details.append(summary, ...figure.childNodes);
    figure.append(box, details);
    code.classList.remove("mermaid");
    const id = jobs.size;
    jobs.set(id, { text, box, details });
    if (drawDiagrams.ready) send(id);
  }
  if (drawDiagrams.frame) return;
  const frame = document.createElement("iframe");
  frame.setAttribute("sandbox", "allow-scripts");
  frame.className = "offstage";
  frame.title = "Diagrams";
  frame.tabIndex = -1;
  frame.setAttribute("aria-hidden", "true");
  frame.src = "/diagrams";
  drawDiagrams.frame = frame;
  addEventListener("message", (event) => {
    if (event.source !== frame.contentWindow) return;
    if (event.data.ready) {
      drawDiagrams.ready = true;
      for (const id of jobs.keys()) send(id);
      return;
    }
    const job = jobs.get(event.data.id);
    if (job) showDiagram(job, event.data);
  });
  dark.addEventListener("change", () => { for (const id of jobs.keys()) send(id); });
  document.body.append(frame);
}

function showDiagram({ box, details }, { svg, error }) {
  box.removeAttribute("aria-busy");
  if (typeof svg !== "string") {
    box.textContent = `Cannot draw this diagram: ${error}`;
    details.open = true;
    return;
  }
  const size = /viewBox="[-\d.]+ [-\d.]+ ([\d.]+) ([\d.]+)"/.exec(svg);
  const image = document.createElement("img");
  image.alt = "Diagram; its source is below";
  if (size) {
    image.width = Math.ceil(size[1]);
    image.height = Math.ceil(size[2]);
  }
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  box.replaceChildren(image);
}

// ---- comments
function openComments() {
  const dialog = one("#comment-form");
  if (!dialog) return;
  const form = one("form", dialog);
  document.addEventListener("click", (event) => {
    const button = event.target.closest?.(".add-comment");
    if (!button) return;
    form.elements.on.value = button.dataset.on;
    form.elements.at.value = button.dataset.at;
    form.elements.back.value = location.pathname + location.search + location.hash;
    one("#comment-about").textContent = [button.dataset.on, button.dataset.at].filter(Boolean).join(" · ");
    dialog.showModal();
    form.elements.text.focus();
  });
  one(".cancel", dialog).addEventListener("click", () => dialog.close());
}

// ---- live: what the agents do and write
function follow() {
  const place = one("[data-follow]");
  if (!place) return;
  const log = one("#log[data-follow]");
  let source = null;
  let last = null;
  const only = log?.dataset.only;
  const address = () => {
    const url = new URL(place.dataset.follow, location.href);
    if (last) url.searchParams.set("after", last);
    return url;
  };
  const start = () => {
    if (source) return;
    source = new EventSource(address());
    source.addEventListener("run", (event) => {
      last = event.lastEventId;
      const { run, items } = JSON.parse(event.data);
      if (only && run !== only) return;
      append(log, items);
      const name = one("#live-run");
      if (name) name.textContent = run;
      const panel = log.closest(".live");
      panel?.classList.remove("empty-log");
      panel?.classList.toggle("idle", log.lastElementChild?.classList.contains("end") ?? false);
    });
    source.addEventListener("documents", (event) => {
      // On the board, positions come with these events; on a change, with its runs.
      if (!log) last = event.lastEventId;
      refresh();
    });
  };
  const stop = () => { source?.close(); source = null; };
  // Browsers allow six connections to a server: a hidden page closes its own.
  document.addEventListener("visibilitychange", () => (document.hidden ? stop() : start()));
  addEventListener("pagehide", stop);
  addEventListener("pageshow", start);
  if (log) log.scrollTop = log.scrollHeight;
  if (!document.hidden) start();
}

const MOST_ITEMS = 3000;

function append(log, items) {
  const atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 40;
  for (const item of items) {
    if (item.html !== undefined) {
      // Rendered by the server, with all text in it escaped.
      log.insertAdjacentHTML("beforeend", item.html);
      continue;
    }
    let text = log.lastElementChild;
    if (!text?.classList.contains("text")) {
      text = document.createElement("li");
      text.className = "text";
      log.append(text);
    }
    text.append(item.delta);
  }
  while (log.childElementCount > MOST_ITEMS) log.firstElementChild.remove();
  if (atEnd) log.scrollTop = log.scrollHeight;
}

// Replaces the parts of the page that changed, unless the focus is in them.
const shown = new Map();
for (const part of all("[data-live]")) shown.set(part.dataset.live, part.innerHTML);
let refreshing = false;
let again = false;
async function refresh() {
  again = refreshing;
  if (refreshing) return;
  refreshing = true;
  try {
    const answer = await fetch(location.href, { headers: { accept: "text/html" } });
    if (!answer.ok) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const part of all("[data-live]")) {
      const fresh = one(`[data-live="${part.dataset.live}"]`, page);
      if (!fresh || fresh.innerHTML === shown.get(part.dataset.live)) continue;
      if (part.contains(document.activeElement)) continue;
      shown.set(part.dataset.live, fresh.innerHTML);
      part.replaceChildren(...fresh.childNodes);
      showTimes(part);
      drawDiagrams(part);
    }
    refreshBoard(page);
  } finally {
    refreshing = false;
    // What changed in the meantime may be missing from the page that was just loaded.
    if (again) refresh();
  }
}

// The last HTML of each card from the server, by the id of its change.
const cards = new Map(all(".card").map((card) => [card.dataset.id, card.innerHTML]));

// Updates the board card by card. A card stays in place as long as it stays in its column; a new
// one comes first. What is in view does not move, and the focus stays.
function refreshBoard(page) {
  const [board, fresh] = [one("#board"), one("#board", page)];
  if (!board || !fresh) return;
  const seen = scrollY > 0 ? all(".card:not([hidden])", board).map((card) => [card, card.parentElement, card.getBoundingClientRect()])
    .filter(([, , box]) => box.bottom > 0 && box.top < innerHeight) : [];
  const focused = document.activeElement?.closest("#board .card a");
  const link = focused && [focused.closest(".card").dataset.id, focused.getAttribute("href")];
  // The browser would anchor to one card, which may be the one that moves. The rest of the time
  // it does better on its own, because cards get their sizes only when they come near.
  board.style.overflowAnchor = "none";
  const old = new Map(all(".card", board).map((card) => [card.dataset.id, card]));
  const names = new Set(all(".column", fresh).map((column) => column.dataset.column));
  let before = null;
  for (const column of all(".column", fresh)) {
    let here = one(`.column[data-column="${column.dataset.column}"]`, board);
    const coming = all(".card", column);
    const count = one(".count", column).textContent;
    if (!here) {
      here = column;
      one(".cards", here).replaceChildren();
    }
    let place = before ? before.nextElementSibling : board.firstElementChild;
    while (place && !names.has(place.dataset.column)) place = place.nextElementSibling;
    if (place !== here) board.insertBefore(here, place);
    before = here;
    if (one(".count", here).textContent !== count) one(".count", here).textContent = count;
    const list = one(".cards", here);
    for (const card of coming.reverse()) {
      const [id, html] = [card.dataset.id, card.innerHTML];
      const known = old.get(id);
      old.delete(id);
      if (known && cards.get(id) !== html) known.replaceChildren(...card.childNodes);
      if (!known || cards.get(id) !== html) showTimes(known ?? card);
      if (known?.parentElement !== list) list.prepend(known ?? card);
      cards.set(id, html);
    }
  }
  for (const [id, card] of old) {
    card.remove();
    cards.delete(id);
  }
  for (const column of all(".column", board)) if (!one(".card", column)) column.remove();
  one(".filter").hidden = cards.size === 0;
  filterCards();
  const kept = seen.find(([card, list]) => card.isConnected && card.parentElement === list && !card.hidden);
  if (kept) scrollBy(0, kept[0].getBoundingClientRect().top - kept[2].top);
  board.style.overflowAnchor = "";
  if (link && !document.activeElement?.closest("#board .card a")) {
    one(`.card[data-id="${link[0]}"] a[href="${link[1]}"]`, board)?.focus({ preventScroll: true });
  }
}

// ---- keys: / filters, j and k go through headings and cards, h goes home
function keys() {
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest?.("input, textarea, select, dialog[open]");
    if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "/") {
      const input = one("#filter");
      if (input) { event.preventDefault(); input.focus(); }
    } else if (event.key === "j" || event.key === "k") {
      const stops = all(".card:not([hidden]) > a, .document .heading .add-comment, .task > .add-comment, .round-block > h2 a");
      if (stops.length === 0) return;
      const at = stops.indexOf(document.activeElement);
      const to = event.key === "j" ? Math.min(at + 1, stops.length - 1) : Math.max(at - 1, 0);
      stops[to].focus();
      stops[to].scrollIntoView({ block: "center" });
    } else if (event.key === "h") {
      location.assign("/");
    }
  });
}

showTimes();
one("#filter")?.addEventListener("input", filterCards);
drawDiagrams();
openComments();
follow();
keys();
