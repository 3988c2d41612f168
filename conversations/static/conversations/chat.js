/* Chat: what can be pressed on the page. Without these scripts its forms work; the browser then
   waits for each whole answer. */
import { renew, onDrawn } from "./drawing.js";
import { ask, resume } from "./asking.js";
import { follow, watch } from "./following.js";
import { open } from "./passage.js";
import { copy, drawer, edit, grow } from "./controls.js";
import { name } from "./name.js";
import { say } from "./words.js";

const act = document.getElementById("act");
const compose = document.getElementById("compose");
const text = document.getElementById("text");
const stop = document.getElementById("stop");
const DRAFT = `draft:${name}`;

document.documentElement.classList.add("js");
drawer();
grow(text);

// After each drawing, of what is new.
onDrawn((article) => {
  for (const button of article.querySelectorAll(".scripted[hidden]")) button.hidden = false;
  if (article.dataset.events) follow(article);
});
function settle() {
  const running = document.querySelector("[data-stop]");
  stop.hidden = !running;
  document.getElementById("send").hidden = Boolean(running);
}
document.addEventListener("drawn", settle);
settle();
watch();

async function press(event) {
  event.preventDefault();
  const button = event.submitter;
  if (button.name === "text" || button.name === "replaces") {
    const body = new FormData(compose);
    body.set("text", button.name === "text" ? button.value : "");
    if (button.name === "replaces") body.set("replaces", button.value);
    await ask(body);
    return;
  }
  button.setAttribute("aria-disabled", "true");
  const response = await fetch(button.formAction, {
    method: "POST",
    body: new FormData(act, button),
    headers: { Accept: "application/json" },
  }).catch(() => null);
  button.removeAttribute("aria-disabled");
  const told = response?.ok ? await response.json() : null;
  if (!told) document.getElementById("trouble").textContent = say("unsent");
  const isOther = told && new URL(told.page, location.href).pathname !== location.pathname;
  const isThisForgotten = isOther && button.formAction.includes(`/${name}/`);
  if (isThisForgotten) location.assign(told.page);
  else await renew({ tell: true });
}

act.addEventListener("submit", press);
compose.addEventListener("submit", (event) => {
  event.preventDefault();
  if (!text.value.trim() || document.querySelector("[data-stop]")) return;
  ask(new FormData(compose));
});
text.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  compose.requestSubmit();
});
text.addEventListener("input", () => sessionStorage.setItem(DRAFT, text.value));
stop.addEventListener("click", () => document.querySelector("[data-stop]")?.click());
document.getElementById("languages")?.addEventListener("change", (event) => {
  event.target.form.requestSubmit();
});

document.addEventListener("click", (event) => {
  const pressed = event.target.closest("a, button");
  if (!pressed) return;
  if (pressed.matches("a[href*='/turns/']")) {
    event.preventDefault();
    open(pressed.href);
  } else if (pressed.dataset.copy !== undefined) {
    copy(pressed, pressed.closest(".replied").querySelector("[data-answer]"));
  } else if (pressed.matches(".copy-code")) {
    copy(pressed, pressed.parentElement.querySelector("code"));
  } else if (pressed.dataset.edit) {
    edit(pressed, (words) => {
      const body = new FormData(compose);
      body.set("text", words);
      body.set("replaces", pressed.dataset.edit);
      ask(body);
    });
  } else if (pressed.matches("a.suggestion")) {
    event.preventDefault();
    text.focus();
  }
});
text.value ||= sessionStorage.getItem(DRAFT) ?? "";
resume();
if (matchMedia("(hover: hover)").matches) text.focus();
