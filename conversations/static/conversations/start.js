/* Progress: says that Docent is at work while the browser waits for the answer. */
"use strict";

const forms = document.querySelectorAll("form[data-progress]");
let clock = 0;

function begin(event) {
  const line = document.getElementById(event.target.dataset.progress);
  const started = Date.now();
  const tell = () => {
    line.dataset.seconds = `${Math.round((Date.now() - started) / 1000)} s`;
  };
  line.textContent = "Looking for the answer…";
  line.classList.add("busy");
  tell();
  clock = window.setInterval(tell, 1000);
  // Not at once: a button that is disabled now would not be sent.
  window.setTimeout(() => setDisabled(true), 0);
}

function setDisabled(disabled) {
  for (const button of document.querySelectorAll("form[data-progress] button")) {
    button.disabled = disabled;
  }
}

function reset() {
  window.clearInterval(clock);
  setDisabled(false);
  for (const line of document.querySelectorAll(".working")) {
    line.textContent = "";
    line.classList.remove("busy");
  }
}

for (const form of forms) {
  form.addEventListener("submit", begin);
}
// The browser's back button brings the page back as it was left: still at work.
window.addEventListener("pageshow", (event) => event.persisted && reset());

document.getElementById("text")?.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    event.target.form.requestSubmit();
  }
});
