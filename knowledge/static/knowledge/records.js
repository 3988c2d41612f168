/* Records: opens what a link leads to when it is folded. */
"use strict";

function unfold() {
  const target = document.getElementById(decodeURIComponent(window.location.hash.slice(1)));
  for (let place = target; place; place = place.parentElement?.closest("details")) {
    if (place instanceof HTMLDetailsElement) place.open = true;
  }
  target?.scrollIntoView();
}

window.addEventListener("hashchange", unfold);
unfold();
