/* Controls: copying, editing, and the drawer of conversations on a phone. */
import { say } from "./words.js";

const COPIED_MS = 1500;

/** Copy the words of an element, and say so on the button. */
export async function copy(button, element) {
  const text = element.innerText.trim();
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Without HTTPS there is no clipboard but this.
    const range = document.createRange();
    range.selectNodeContents(element);
    getSelection().removeAllRanges();
    getSelection().addRange(range);
    document.execCommand("copy");
    getSelection().removeAllRanges();
  }
  const use = button.querySelector("use");
  const before = use.getAttribute("href");
  use.setAttribute("href", before.replace("#copy", "#tick"));
  document.getElementById("heard").textContent = say("copied");
  window.setTimeout(() => use.setAttribute("href", before), COPIED_MS);
}

/** Let a message be written otherwise in its place, and hand over what is sent. */
export function edit(button, sent) {
  const asked = button.closest(".asked");
  const before = [...asked.childNodes];
  const form = document.getElementById("editor").content.cloneNode(true).firstElementChild;
  const field = form.querySelector("textarea");
  field.value = asked.querySelector(".bubble").textContent;
  const close = () => {
    asked.replaceChildren(...before);
    button.focus();
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (!field.value.trim()) return;
    close();
    sent(field.value);
  });
  form.querySelector("[value=cancel]").addEventListener("click", close);
  form.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      event.stopPropagation();
      close();
    } else if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      form.requestSubmit();
    }
  });
  asked.replaceChildren(form);
  field.focus();
}

/** Let a field be as high as what is written in it, where the browser does not by itself. */
export function grow(field) {
  if (CSS.supports("field-sizing", "content")) return;
  field.addEventListener("input", () => {
    field.style.height = "auto";
    field.style.height = `${field.scrollHeight}px`;
  });
}

/** Make a drawer of the side: it takes the focus, and gives it back. */
export function drawer() {
  const side = document.getElementById("side");
  const menu = document.getElementById("menu");
  const page = document.getElementById("page");
  const set = (isOpen) => {
    side.classList.toggle("open", isOpen);
    page.inert = isOpen;
    menu.setAttribute("aria-expanded", String(isOpen));
    (isOpen ? document.getElementById("close-side") : menu).focus();
  };
  menu.setAttribute("role", "button");
  menu.setAttribute("aria-expanded", "false");
  menu.addEventListener("click", (event) => {
    event.preventDefault();
    set(true);
  });
  for (const id of ["close-side", "veil"]) {
    document.getElementById(id).addEventListener("click", (event) => {
      event.preventDefault();
      set(false);
    });
  }
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && side.classList.contains("open")) set(false);
  });
}
