/* Live: fetches the page again every few seconds, while somebody looks at it and wants it to, and
   puts what is new in place of the regions that are marked with data-live. */
const EVERY_MS = 5000;
const wish = document.getElementById("live");

async function renew() {
  if (document.hidden || !wish?.checked) return;
  const response = await fetch(window.location.href).catch(() => null);
  if (!response?.ok || response.redirected) return;
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  for (const region of document.querySelectorAll("[data-live]")) {
    const fresh = page.getElementById(region.id);
    // What has the focus would lose it.
    if (!fresh || region.contains(document.activeElement)) continue;
    if (region.innerHTML !== fresh.innerHTML) region.replaceChildren(...fresh.childNodes);
  }
}

window.setInterval(renew, EVERY_MS);
