/* Refresh: draws an element anew from an address every second, for as long as it names one.

   <section id="trial" data-refresh="/address/"></section>
   The page there has an element of the same id; once that one has no data-refresh, it is over. */
"use strict";

const REFRESH_MILLISECONDS = 1000;

async function refresh(place) {
  if (!place.isConnected) return;
  let next = null;
  try {
    const response = await fetch(place.dataset.refresh, { headers: { Accept: "text/html" } });
    if (response.status >= 400 && response.status < 500) return;
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    next = page.getElementById(place.id);
  } catch {
    next = null;
  }
  const focused = place.contains(document.activeElement) ? document.activeElement : null;
  // What somebody is writing stays until they leave the field.
  if (next && !focused?.matches("input, select, textarea")) {
    place.replaceWith(next);
    place = next;
    const button = focused?.getAttribute("formaction");
    if (button) place.querySelector(`[formaction="${button}"]`)?.focus();
  }
  if (place.dataset.refresh) watch(place);
}

function watch(place) {
  window.setTimeout(() => refresh(place), REFRESH_MILLISECONDS);
}

for (const place of document.querySelectorAll("[data-refresh]")) watch(place);
