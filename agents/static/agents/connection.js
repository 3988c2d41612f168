/* Connection: lists a provider's models while the form is filled in, and follows a trial. */
"use strict";

const LOOK_MS = 1500;
const form = document.getElementById("connection");
const list = document.getElementById("list");

async function look() {
  const line = document.getElementById("list-told");
  line.textContent = "Asking for its models…";
  list.disabled = true;
  try {
    const response = await fetch(list.dataset.url, { method: "POST", body: new FormData(form) });
    const { models, error } = await response.json();
    document.getElementById("listed").replaceChildren(
      ...models.map((name) => Object.assign(document.createElement("option"), { value: name })),
    );
    const some = models.slice(0, 12).join(", ");
    line.textContent = error || (models.length ? `It has ${models.length}: ${some}${models.length > 12 ? " …" : ""}` : "It keeps no list: write the name.");
  } catch {
    line.textContent = "That could not be asked. Try again.";
  }
  list.disabled = false;
}

async function follow() {
  const shown = document.getElementById("trial");
  if (!shown?.hasAttribute("data-running")) return;
  try {
    const page = await (await fetch(window.location.pathname)).text();
    const now = new DOMParser().parseFromString(page, "text/html").getElementById("trial");
    if (now) shown.replaceWith(document.adoptNode(now));
  } catch {
    // The next look tries again.
  }
  window.setTimeout(follow, LOOK_MS);
}

list?.addEventListener("click", look);
window.setTimeout(follow, LOOK_MS);
