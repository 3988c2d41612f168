/* Asking: sends a message so that none is lost. It is kept in the browser until the server has
   taken it, under the address the conversation has from then on; a page that is loaded again sends
   it again, with the same key, and the server takes it once. */
import { renew, toEnd } from "./drawing.js";
import { address, name } from "./name.js";
import { say, show } from "./words.js";

const PENDING = `pending:${name}`;
const RELOADED = `reloaded:${name}`;
const talk = document.getElementById("talk");
const trouble = document.getElementById("trouble");
const text = document.getElementById("text");
const welcome = document.getElementById("welcome");
const BEGINNING = location.pathname === address ? "" : location.pathname + location.search;
const AGAIN_SECONDS = 5;
const LONGEST_AGAIN = 60;
let waiting = 0;

/** Send a message: a FormData of the composer. */
export function ask(body) {
  if (sessionStorage.getItem(PENDING)) return Promise.resolve();
  body.set("key", newKey());
  const fields = [...body.entries()].filter(([field]) => field !== "csrfmiddlewaretoken");
  sessionStorage.setItem(PENDING, JSON.stringify(fields));
  if (body.get("text") === text.value) empty();
  return send();
}

/** Send what was not taken before the page was loaded again. */
export function resume() {
  if (!sessionStorage.getItem(PENDING)) return;
  document.getElementById("error")?.remove();
  send();
}

// Take back what waits to be sent.
function retract() {
  window.clearInterval(waiting);
  giveBack();
}

async function send() {
  const stored = sessionStorage.getItem(PENDING);
  if (!stored) return;
  const fields = JSON.parse(stored);
  // From now on a page that is loaded again finds this conversation.
  if (location.pathname + location.search !== address) history.pushState(null, "", address);
  preview(fields);
  show(trouble, "");
  const body = new FormData();
  for (const [field, value] of fields) body.set(field, value);
  body.set("csrfmiddlewaretoken", document.querySelector("#act [name=csrfmiddlewaretoken]").value);
  let response;
  try {
    response = await fetch(document.getElementById("compose").action, {
      method: "POST",
      body,
      headers: { Accept: "application/json" },
      // Goes on when the page goes away.
      keepalive: true,
    });
  } catch {
    again(say("unsent"), AGAIN_SECONDS);
    return;
  }
  const told = await response.json().catch(() => ({}));
  if (response.ok) {
    await renew({ tell: true });
    sessionStorage.removeItem(PENDING);
    sessionStorage.removeItem(RELOADED);
    document.getElementById("preview")?.remove();
    toEnd();
  } else if (response.headers.has("Retry-After")) {
    again(told.error, Number(response.headers.get("Retry-After")));
  } else if (response.status === 403 && !told.error && !sessionStorage.getItem(RELOADED)) {
    // Whoever logged in meanwhile has another token: that of the page as it is now.
    sessionStorage.setItem(RELOADED, "yes");
    location.reload();
  } else {
    giveBack();
    show(trouble, told.error ?? say("unsent"));
  }
}

// Count down, and send again; meanwhile the message can be had back.
function again(error, seconds) {
  let left = Math.min(Math.max(1, seconds || AGAIN_SECONDS), LONGEST_AGAIN);
  const line = document.querySelector("#preview .status");
  document.querySelector("#preview button").hidden = false;
  // Read out once, and not with every second.
  show(document.getElementById("heard"), error);
  show(document.querySelector("#preview .why"), error);
  show(line, say("resend", { seconds: left }));
  window.clearInterval(waiting);
  waiting = window.setInterval(() => {
    left -= 1;
    show(line, say("resend", { seconds: Math.max(0, left) }));
    if (left > 0) return;
    window.clearInterval(waiting);
    send();
  }, 1000);
}

// What was not taken goes back to where it was written.
function giveBack() {
  const fields = new Map(JSON.parse(sessionStorage.getItem(PENDING) ?? "[]"));
  sessionStorage.removeItem(PENDING);
  document.getElementById("preview")?.remove();
  if (welcome?.isConnected) {
    welcome.hidden = false;
    document.getElementById("title").replaceChildren();
  }
  text.value ||= fields.get("text") ?? "";
  if (BEGINNING && !document.body.dataset.begun) history.replaceState(null, "", BEGINNING);
  text.focus();
}

// The message as it will stand there, until the server has drawn it.
function preview(fields) {
  if (document.getElementById("preview")) return;
  const words = new Map(fields).get("text");
  if (welcome?.isConnected) {
    welcome.hidden = true;
    const heading = document.createElement("h1");
    heading.textContent = words;
    document.getElementById("title").replaceChildren(heading);
  }
  const article = document.getElementById("sending").content.cloneNode(true).firstElementChild;
  article.querySelector(".bubble").textContent = words;
  // What is asked again is not written anew.
  article.querySelector(".asked").hidden = !words;
  article.querySelector("button").addEventListener("click", retract);
  talk.append(article);
  toEnd();
}

function empty() {
  text.value = "";
  sessionStorage.removeItem(`draft:${name}`);
}

// 128 random bits: whoever has them may see the conversation. `randomUUID` needs HTTPS.
function newKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
