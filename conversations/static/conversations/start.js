/* Asking: sends a question, and shows the answer while it is written. Without this script the
   same forms work; the browser then waits for the whole answer. */
"use strict";

const draft = document.getElementById("draft");
const AGAIN_MS = 2000;
let clock = 0;

async function ask(event) {
  event.preventDefault();
  const form = event.target;
  const line = document.getElementById(form.dataset.progress);
  const body = new FormData(form);
  // The suggestion that was clicked.
  if (event.submitter?.name) body.set(event.submitter.name, event.submitter.value);
  begin(line, "Looking for the answer…");
  try {
    const response = await fetch(form.action, {
      method: "POST",
      body,
      headers: { Accept: "application/json" },
    });
    const told = await response.json();
    if (response.ok) follow(told, line);
    else stop(line, told.error);
  } catch {
    stop(line, "That could not be sent. Reload the page and try again.");
  }
}

function begin(line, text) {
  const started = Date.now();
  const tell = () => {
    line.dataset.seconds = `${Math.round((Date.now() - started) / 1000)} s`;
  };
  line.textContent = text;
  line.classList.add("busy");
  tell();
  clock = window.setInterval(tell, 1000);
  setDisabled(true);
}

function follow({ events, page }, line) {
  const source = new EventSource(events);
  source.addEventListener("token", (event) => {
    const { text, replaces } = JSON.parse(event.data);
    // Text, never HTML: it is neither checked nor cleaned yet.
    draft.textContent = (replaces ? "" : draft.textContent) + text;
    draft.hidden = !draft.textContent;
    say(line, draft.hidden ? "Writing the answer again…" : "Writing the answer…");
  });
  source.addEventListener("workflow_complete", () => {
    source.close();
    window.location.assign(page);
  });
  source.addEventListener("error", () => {
    // Else the browser connects again by itself, and goes on after the last event it got.
    if (source.readyState === EventSource.CLOSED) {
      window.setTimeout(() => window.location.assign(page), AGAIN_MS);
    }
  });
}

function say(line, text) {
  // Only what changed: a screen reader would read it anew with every piece.
  if (line.textContent !== text) line.textContent = text;
}

function stop(line, text) {
  window.clearInterval(clock);
  setDisabled(false);
  line.classList.remove("busy");
  line.textContent = text;
}

function setDisabled(disabled) {
  for (const button of document.querySelectorAll("form[data-progress] button")) {
    button.disabled = disabled;
  }
}

for (const form of document.querySelectorAll("form[data-progress]")) {
  form.addEventListener("submit", ask);
}
// The browser's back button brings the page back as it was left: still at work.
window.addEventListener("pageshow", (event) => {
  if (!event.persisted) return;
  draft.textContent = "";
  draft.hidden = true;
  for (const line of document.querySelectorAll("form ~ .working")) stop(line, "");
});

// A turn that was already under way when the page was opened.
const still = document.getElementById("still");
if (still) {
  begin(still, "Still at work on this.");
  follow(still.dataset, still);
}

document.getElementById("text")?.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    event.target.form.requestSubmit();
  }
});
