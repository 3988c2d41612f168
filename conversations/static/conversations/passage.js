/* Passage: shows what an answer cites beside the conversation, its sentence marked. */

const sheet = document.getElementById("passage");
let opener = null;

/** Open the passage at this address; where that fails, the page of it. */
export async function open(address) {
  opener = document.activeElement;
  const response = await fetch(address).catch(() => null);
  const page = response?.ok
    ? new DOMParser().parseFromString(await response.text(), "text/html")
    : null;
  const passage = page?.getElementById("cited");
  if (!passage) {
    location.assign(address);
    return;
  }
  const close = document.getElementById("close-side").cloneNode(true);
  close.removeAttribute("id");
  const top = document.createElement("div");
  top.className = "sheet-close";
  top.append(close);
  sheet.replaceChildren(top, document.importNode(passage, true));
  close.addEventListener("click", (event) => {
    event.preventDefault();
    sheet.close();
  });
  sheet.showModal();
  sheet.querySelector("#passage-title").focus();
  const marked = sheet.querySelector("mark") ?? sheet.querySelector(".passage");
  marked.scrollIntoView({ block: "center" });
}

sheet.addEventListener("click", (event) => {
  // Beside it.
  if (event.target === sheet) sheet.close();
});
sheet.addEventListener("close", () => {
  if (opener?.isConnected) opener.focus();
});
