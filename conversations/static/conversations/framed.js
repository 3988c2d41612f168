/* Framed: what the chat page does beside chatting while it is in a frame of another site. */

const [, key, place] = /^\/widget\/([^/]+)\/[^/]+\/[^/]+\/(.*)$/.exec(window.location.pathname) ?? [];

// The tab comes back to its conversation when the page around the frame is loaded again.
window.addEventListener("pagehide", () => {
  const here = /^\/widget\/[^/]+\/[^/]+\/[^/]+\/(.*)$/.exec(window.location.pathname)?.[1];
  try {
    if (key) sessionStorage.setItem(`docent-${key}`, here ?? place);
  } catch {
    /* Without storage it begins anew. */
  }
});

// Escape closes the frame, unless it closes something on the page first.
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || event.defaultPrevented || document.querySelector("dialog[open]")) return;
  window.parent.postMessage("docent:close", "*");
});

// Who opened the frame wants to write; on a phone the keyboard would hide what there is to read.
if (document.hasFocus() && !matchMedia("(pointer: coarse)").matches) {
  document.getElementById("text")?.focus();
}
