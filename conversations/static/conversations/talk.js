/* Talk: shows staff what is said in a conversation while it is said. An event
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

function follow({ follow: address }) {
  const said = document.querySelectorAll("[data-message]");
  const last = said[said.length - 1]?.dataset.message;
  const source = new EventSource(last ? `${address}?after=${last}` : address);
  source.addEventListener("message", refresh);
  source.addEventListener("status", refresh);
  source.addEventListener("error", () => {
    // Else the browser connects again by itself.
    if (source.readyState === EventSource.CLOSED) {
      window.setTimeout(() => follow(followed.dataset), AGAIN_MS);
    }
  });
}

if (followed) {
  follow(followed.dataset);
  document.addEventListener("visibilitychange", refresh);
}
const words = document.querySelector("textarea[data-send]");
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
