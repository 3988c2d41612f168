/* Adding: sends chosen or dropped files and addresses to the API, and shows what becomes of them. */
"use strict";

const form = document.getElementById("adding");
const zone = document.getElementById("zone");
const chooser = document.getElementById("files");
const queue = document.getElementById("queue");
const send = document.getElementById("send");
const web = document.getElementById("web");
const jobs = document.getElementById("jobs");
const home = document.getElementById("home");
const naming = document.getElementById("naming");
const named = document.getElementById("name");
const limit = Number(form.dataset.limit);

/* Each request becomes a job of its own: this many files, or bytes, at once. */
const FILES_AT_ONCE = 50;
const BYTES_AT_ONCE = 64 * 1024 * 1024;

let chosen = [];

function size(bytes) {
  if (bytes < 1024) return count(bytes, "byte");
  if (bytes < 1024 * 1024) return `${Math.round(bytes / 1024)} KB`;
  return `${(bytes / 1024 / 1024).toFixed(1)} MB`;
}

function add(files) {
  for (const file of files) {
    const known = chosen.findIndex((other) => other.name === file.name);
    if (known >= 0) chosen[known] = file;
    else chosen.push(file);
  }
  drawQueue();
}

function remove(file) {
  chosen = chosen.filter((other) => other !== file);
  drawQueue();
}

function drawQueue() {
  queue.replaceChildren(...chosen.map((file) => element("li", {},
    element("span", { class: "origin", dir: "auto" }, file.name),
    element("span", { class: file.size > limit ? "bad" : "soft" },
      file.size > limit ? `${size(file.size)}, more than the ${size(limit)} allowed` : size(file.size)),
    element("button", {
      type: "button", class: "button quiet", "aria-label": `Leave out ${file.name}`, onclick: () => remove(file),
    }, "×"),
  )));
  const fitting = chosen.filter((file) => file.size <= limit).length;
  send.disabled = fitting === 0;
  send.textContent = fitting ? `Add ${count(fitting, "file")}` : "Add files";
}

function* batches(files) {
  let batch = [];
  let bytes = 0;
  for (const file of files) {
    if (batch.length && (batch.length === FILES_AT_ONCE || bytes + file.size > BYTES_AT_ONCE)) {
      yield batch;
      [batch, bytes] = [[], 0];
    }
    batch.push(file);
    bytes += file.size;
  }
  if (batch.length) yield batch;
}

/* XMLHttpRequest, because fetch does not tell how much of a body has been sent. */
function upload(files, told) {
  const body = new FormData();
  body.append("collection", collection());
  body.append("wait", "false");
  body.append("replace", form.elements.replace.checked);
  for (const file of files) body.append("file", file, file.name);
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", form.dataset.api);
    request.setRequestHeader("X-CSRFToken", token());
    request.responseType = "json";
    request.upload.onprogress = (event) => event.lengthComputable && told(event.loaded / event.total);
    request.onerror = () => reject(new Error("The upload was interrupted. What was chosen is still here."));
    request.onload = () => {
      const answer = request.response || {};
      if (request.status < 300) resolve(answer);
      else reject(new Error(answer.detail || `Docent answered ${request.status}.`));
    };
    request.send(body);
  });
}

function show(job) {
  const src = `${form.dataset.ingests}${job.id}/`;
  // The same address asked for again while its job is open gives the same job.
  jobs.querySelector(`[src="${src}"]`)?.remove();
  jobs.prepend(element("ingest-progress", {
    class: "card", src, show: "skipped",
    record: form.dataset.record.replace(form.dataset.blank, job.id),
  }));
}

/* A line that says how it goes; it goes away when it went well. */
function begin(text) {
  const fill = element("div", { class: "fill running" });
  fill.style.width = "0";
  const words = element("p", {}, text);
  const card = element("div", { class: "card", role: "status" }, words, element("div", { class: "meter" }, fill));
  jobs.prepend(card);
  return {
    tell(share) {
      fill.style.width = `${Math.round(100 * share)}%`;
      if (share === 1) words.textContent = "Sent. Docent is writing it down…";
    },
    end: () => card.remove(),
    fail(error) {
      card.className = "card fault";
      card.setAttribute("role", "alert");
      card.replaceChildren(error.message);
    },
  };
}

/* A new collection is named in a field of its own: a slip while typing would make another one. */
function isNew() {
  return home.value === form.dataset.new;
}

function collection() {
  return isNew() ? named.value : home.value;
}

function collectionIsNamed() {
  const exists = [...home.options].some((option) => option.value === named.value);
  named.setCustomValidity(isNew() && exists ? "There is a collection of this name: choose it above." : "");
  return home.reportValidity() && (!isNew() || named.reportValidity());
}

function drawNaming() {
  naming.hidden = !isNew();
  named.required = isNew();
}

home.addEventListener("change", () => {
  drawNaming();
  if (isNew()) named.focus();
});
drawNaming();

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  if (!collectionIsNamed()) return;
  send.disabled = true;
  for (const batch of [...batches(chosen.filter((file) => file.size <= limit))]) {
    const line = begin(`Sending ${count(batch.length, "file")}…`);
    try {
      const job = await upload(batch, line.tell);
      line.end();
      chosen = chosen.filter((file) => !batch.includes(file));
      show(job);
    } catch (error) {
      line.fail(error);
      break;
    }
  }
  chooser.value = "";
  drawQueue();
});

web.addEventListener("submit", async (event) => {
  event.preventDefault();
  if (!collectionIsNamed()) return;
  const line = begin("Asking for it…");
  try {
    const said = { url: web.elements.url.value, collection: collection(), wait: false };
    show(await call("POST", form.dataset.api, said));
    line.end();
    web.reset();
  } catch (error) {
    line.fail(error);
  }
});

// Unfold would write the file's name into a text field beside it, and there is none.
chooser.hasChangeListener = true;
chooser.addEventListener("change", () => add(chooser.files));

for (const kind of ["dragenter", "dragover"]) {
  zone.addEventListener(kind, (event) => {
    event.preventDefault();
    zone.classList.add("over");
  });
}
zone.addEventListener("dragleave", () => zone.classList.remove("over"));
zone.addEventListener("drop", (event) => {
  event.preventDefault();
  zone.classList.remove("over");
  const entries = [...event.dataTransfer.items].map((item) => item.webkitGetAsEntry?.());
  const folders = entries.filter((entry) => entry?.isDirectory).map((entry) => entry.name);
  add([...event.dataTransfer.files].filter((file) => !folders.includes(file.name)));
  if (folders.length) {
    begin("").fail(new Error(
      `${folders.join(", ")}: a folder cannot be sent from here. Send it as a zip, or use the command ingest.`,
    ));
  }
});
// A file dropped beside the zone would otherwise replace the page.
for (const kind of ["dragover", "drop"]) {
  window.addEventListener(kind, (event) => event.preventDefault());
}

drawQueue();
