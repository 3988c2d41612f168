/* Desk: says to screen readers what the widgets of Django's admin leave out. */
"use strict";

function nameWidgets() {
  // A name on what has no role is not read.
  for (const hint of document.querySelectorAll("span.help-tooltip[aria-label]")) {
    hint.setAttribute("role", "img");
  }
  for (const select of document.querySelectorAll("select.select2-hidden-accessible")) {
    const name = document.querySelector(`label[for="${select.id}"]`)?.textContent.trim();
    if (!name) continue;
    for (const part of select.parentElement.querySelectorAll("[role=combobox], [role=textbox]")) {
      part.removeAttribute("aria-labelledby");
      part.setAttribute("aria-label", `${name} ${part.textContent.trim()}`.trim());
    }
  }
}

// Django makes its widgets at the same event, and this script comes first.
window.addEventListener("load", () => window.setTimeout(nameWidgets));
document.addEventListener("change", () => window.setTimeout(nameWidgets));
