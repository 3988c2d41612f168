/* Frame: goes on to the chat page, with the token that this frame kept for this site and key.

   Storage is the frame's own, apart for each site that it is on. Where a browser gives it none,
   the conversation lasts as long as the frame. */
"use strict";

const { key, language, token, ...flags } = document.currentScript.dataset;
const name = `docent-${key}`;

function kept(storage) {
  try {
    return window[storage].getItem(name);
  } catch {
    return null;
  }
}

let mine = "new" in flags ? null : kept("localStorage");
if (!mine) {
  mine = token;
  try {
    localStorage.setItem(name, mine);
  } catch {
    /* It lasts as long as the frame. */
  }
}
// What this tab was at, see framed.js.
window.location.replace(`/widget/${key}/${language}/${mine}/${kept("sessionStorage") ?? ""}`);
