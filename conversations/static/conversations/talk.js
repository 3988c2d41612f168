/* Talk: shows what is said in a conversation while it is said, to its user and to staff. An event
   only says that there is something new; it is taken from the page itself, fetched once more. */
const followed = document.querySelector("[data-follow]");
const AGAIN_MS = 15000;
let fetching = null;

function refresh() {
  // Two at a time would tell the older page last.
  fetching = (fetching ?? Promise.resolve()).then(renew).catch(() => {});
}

async function renew() {
  if (document.hidden) return;
  const response = await fetch(window.location.href);
  if (!response.ok) return;
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  for (const region of document.querySelectorAll("[data-live]")) {
    const fresh = page.getElementById(region.id);
    if (!fresh) continue;
    if (region.dataset.live === "append") append(region, fresh);
    else if (region.innerHTML !== fresh.innerHTML) region.replaceChildren(...fresh.childNodes);
  }
}

// What is there stays: a screen reader reads what is new alone.
function append(region, fresh) {
  for (const child of [...fresh.children]) {
    if (document.getElementById(child.id)) continue;
    region.append(child);
    child.scrollIntoView({ block: "nearest" });
  }
}

function follow({ follow: address, reloadWhen }) {
  const said = document.querySelectorAll("[data-message]");
  const last = said[said.length - 1]?.dataset.message;
  const source = new EventSource(last ? `${address}?after=${last}` : address);
  source.addEventListener("message", () => {
    if (!reloadWhen) refresh();
  });
  source.addEventListener("status", (event) => {
    if (!reloadWhen) refresh();
    else if (JSON.parse(event.data).status === reloadWhen) window.location.reload();
  });
  source.addEventListener("error", () => {
    // Else the browser connects again by itself.
    if (source.readyState === EventSource.CLOSED) {
      window.setTimeout(() => follow(followed.dataset), AGAIN_MS);
    }
  });
}

async function send(event) {
  event.preventDefault();
  const form = event.target;
  const line = document.getElementById("trouble");
  const button = form.querySelector("button");
  button.disabled = true;
  try {
    const body = new FormData(form);
    const response = await fetch(form.action, {
      method: "POST",
      body,
      headers: { Accept: "application/json" },
    });
    const told = await response.json();
    line.textContent = response.ok ? "" : told.error;
    if (!response.ok) return;
    // The assistant answers again: that has a page of its own.
    if (told.status !== "with_staff") window.location.assign(told.page);
    form.elements.text.value = "";
    refresh();
  } catch {
    line.textContent = "That could not be sent. Try again in a moment.";
  } finally {
    button.disabled = false;
    form.elements.text.focus();
  }
}

if (followed) {
  follow(followed.dataset);
  document.addEventListener("visibilitychange", refresh);
}
document.getElementById("talk")?.addEventListener("submit", send);
const words = document.querySelector("#talk textarea, textarea[data-send]");
words?.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  const button = document.getElementById(words.dataset.send ?? "");
  words.form.requestSubmit(button);
});
// After the field that has the focus was scrolled to.
window.addEventListener("load", () => {
  document.querySelector("#said > :last-child")?.scrollIntoView({ block: "nearest" });
});
