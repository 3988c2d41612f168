/* Drawing: the page is drawn by the server alone. What is new is taken from the page itself,
   fetched once more; what is the same stays, with what was opened in it. */
import { address, name } from "./name.js";
import { say } from "./words.js";

const talk = document.getElementById("talk");
const history = document.getElementById("history");
// Each article as it came from the server: scripts change it afterwards.
const drawn = new Map();
const listeners = [];
const REGIONS = ["mine", "state", "title", "choices"];
const NEAR_PX = 120;
const MARGIN_PX = 16;
const channel = new BroadcastChannel(`talk:${name}`);
let fetching = Promise.resolve();
let queued = false;

/** Call it with each article that is drawn, now and later. */
export function onDrawn(listener) {
  listeners.push(listener);
  for (const article of talk.querySelectorAll("article")) listener(article);
}

/** Draw what is new; `tell` the other tabs that there is something. */
export function renew({ tell = false } = {}) {
  // Two at a time would draw the older page last; one that has not begun brings all.
  if (!queued) {
    queued = true;
    fetching = fetching.then(fetchAndDraw).catch(() => false);
  }
  return fetching.then((isDrawn) => {
    if (isDrawn && tell) channel.postMessage("news");
    return isDrawn;
  });
}

async function fetchAndDraw() {
  queued = false;
  const isShown = location.pathname === address;
  const response = await fetch(isShown ? location.href : address, { headers: { Accept: "text/html" } });
  if (!response.ok) return false;
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  draw(page);
  return true;
}

function draw(page) {
  const wasNear = isNearEnd();
  const fresh = [...page.querySelectorAll("#talk > article")];
  document.getElementById("welcome")?.remove();
  const kept = new Set(fresh.map((article) => article.id));
  for (const article of [...talk.querySelectorAll(":scope > article")]) {
    // What is still being sent stays.
    if (!kept.has(article.id) && article.id !== "preview") article.remove();
  }
  for (const article of fresh) put(article);
  for (const id of REGIONS) replace(document.getElementById(id), page.getElementById(id));
  document.title = page.title;
  const field = page.getElementById("text");
  if (field) document.getElementById("text").placeholder = field.placeholder;
  for (const key of ["begun", "follow", "last"]) {
    document.body.dataset[key] = page.body.dataset[key] ?? "";
  }
  document.dispatchEvent(new Event("drawn"));
  if (wasNear) toEnd();
}

function put(article) {
  const html = article.outerHTML;
  const old = document.getElementById(article.id);
  if (old && drawn.get(article.id) === html) return;
  const fresh = document.importNode(article, true);
  drawn.set(article.id, html);
  if (old) {
    for (const details of old.querySelectorAll("details[open][data-keep]")) {
      const same = fresh.querySelector(`details[data-keep="${details.dataset.keep}"]`);
      if (same) same.open = true;
    }
    const focus = focused(old);
    old.replaceWith(fresh);
    if (focus) (fresh.querySelector(focus) ?? document.getElementById("text")).focus();
  } else {
    talk.append(fresh);
  }
  enhance(fresh);
  for (const listener of listeners) listener(fresh);
}

// What has the focus within, as a selector that finds the same in what takes its place.
function focused(article) {
  const active = document.activeElement;
  if (!article.contains(active)) return "";
  if (active.id) return `#${CSS.escape(active.id)}`;
  if (active.name) return `[name="${active.name}"][value="${CSS.escape(active.value)}"]`;
  return "summary";
}

function replace(old, fresh) {
  if (!old || !fresh || old.innerHTML === fresh.innerHTML) return;
  old.replaceChildren(...document.importNode(fresh, true).childNodes);
}

// Buttons on code, and what the numbers of sources are called.
function enhance(article) {
  const button = document.getElementById("code-copy").content;
  for (const block of article.querySelectorAll(".answer pre")) {
    if (!block.querySelector(".copy-code")) block.append(button.cloneNode(true));
  }
  // What scrolls must be reached by the keyboard.
  for (const wide of article.querySelectorAll(".answer :is(pre, table)")) wide.tabIndex = 0;
  for (const link of article.querySelectorAll(".answer a[href*='/turns/']")) {
    const source = article.querySelector(`.cited a[href="${link.getAttribute("href")}"] .name`);
    const title = source?.firstChild?.textContent.trim() ?? "";
    link.setAttribute("aria-label", say("source", { number: link.textContent, title }));
  }
}

// The end, but of a long answer its beginning: with the question at the top.
function rest() {
  const last = talk.lastElementChild;
  const top = last ? last.offsetTop - MARGIN_PX : 0;
  return Math.max(0, Math.min(history.scrollHeight - history.clientHeight, top));
}

/** Whether the reader is where the latest is said, and has not gone elsewhere. */
export function isNearEnd() {
  return Math.abs(rest() - history.scrollTop) < NEAR_PX;
}

/** Bring the latest in sight. */
export function toEnd() {
  history.scrollTop = rest();
}

for (const article of talk.querySelectorAll(":scope > article")) {
  drawn.set(article.id, article.outerHTML);
  enhance(article);
}
channel.addEventListener("message", () => renew());
document.addEventListener("visibilitychange", () => {
  if (!document.hidden && document.body.dataset.begun) renew();
});
toEnd();
