/* Ingests: shows how far a job is, and moves while it runs.

   <ingest-progress src="/api/ingests/ID/" show="skipped"></ingest-progress>
   `show` names the status whose items are listed first; left out, all are. */
"use strict";

const ENDED = ["done", "failed", "cancelled"];
const STATUSES = ["new", "changed", "unchanged", "duplicate", "skipped", "listed", "waiting"];
const POLL_MILLISECONDS = 1000;
const PATIENT_MILLISECONDS = 5000;

/* Text only ever becomes text: names of files are written by strangers. */
function element(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}

function token() {
  return document.querySelector("input[name=csrfmiddlewaretoken]")?.value || "";
}

/* Returns the answer's JSON. Throws an Error whose message can be shown. */
async function call(method, address, body) {
  let response;
  try {
    response = await fetch(address, {
      method,
      body: body === undefined ? undefined : JSON.stringify(body),
      headers: { "Content-Type": "application/json", "X-CSRFToken": token() },
    });
  } catch {
    throw new Error("Docent does not answer.");
  }
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) {
    const error = new Error(answer.detail || `Docent answered ${response.status}.`);
    error.status = response.status;
    throw error;
  }
  return answer;
}

function duration(seconds) {
  if (seconds < 60) return `${Math.max(1, Math.round(seconds))} s`;
  if (seconds < 3600) return `${Math.round(seconds / 60)} min`;
  return `${(seconds / 3600).toFixed(1)} h`;
}

function count(number, word) {
  return `${number.toLocaleString("en")} ${word}${number === 1 ? "" : "s"}`;
}

class IngestProgress extends HTMLElement {
  connectedCallback() {
    this.shown = this.getAttribute("show") || "";
    this.page = 1;
    this.look();
  }

  disconnectedCallback() {
    window.clearTimeout(this.timer);
  }

  get address() {
    const query = new URLSearchParams({ page: this.page });
    if (this.shown) query.set("status", this.shown);
    return `${this.getAttribute("src")}?${query}`;
  }

  async look() {
    window.clearTimeout(this.timer);
    const asked = this.address;
    try {
      const job = await call("GET", asked);
      if (asked !== this.address) return;
      this.draw(job);
      if (!ENDED.includes(job.status)) this.again(POLL_MILLISECONDS);
    } catch (error) {
      if (error.status === 404 && this.page > 1) return this.turn(1);
      const isOver = error.status >= 400 && error.status < 500;
      this.say(isOver ? error.message : `${error.message} Trying again.`);
      if (!isOver) this.again(PATIENT_MILLISECONDS);
    }
  }

  again(milliseconds) {
    this.timer = window.setTimeout(() => this.look(), milliseconds);
  }

  say(text) {
    this.querySelector("[role=alert]")?.remove();
    this.append(element("p", { class: "card fault", role: "alert" }, text));
  }

  async order(verb) {
    try {
      await call("POST", `${this.getAttribute("src")}${verb}/`);
    } catch (error) {
      return this.say(error.message);
    }
    return this.look();
  }

  turn(page) {
    this.page = page;
    this.look();
  }

  filter(status) {
    this.shown = this.shown === status ? "" : status;
    this.turn(1);
  }

  draw(job) {
    const focused = this.contains(document.activeElement) ? document.activeElement.dataset.key : null;
    this.replaceChildren(
      this.head(job), this.bar(job), this.line(job), this.chips(job), this.table(job),
    );
    if (job.error) this.say(job.error);
    if (focused) this.querySelector(`[data-key="${focused}"]`)?.focus();
  }

  head(job) {
    const record = this.getAttribute("record");
    const name = element("strong", { dir: "auto" }, job.name);
    const buttons = [];
    if (!ENDED.includes(job.status)) {
      const stopping = job.cancelling;
      buttons.push(element("button", {
        type: "button", class: "button quiet", "data-key": "cancel", disabled: stopping,
        onclick: () => this.order("cancel"),
      }, stopping ? "Stopping…" : "Cancel"));
    } else if (job.progress.outcomes.skipped || job.progress.outcomes.waiting) {
      buttons.push(element("button", {
        type: "button", class: "button quiet", "data-key": "retry", onclick: () => this.order("retry"),
      }, job.progress.outcomes.waiting ? "Go on" : "Try failed again"));
    }
    return element("header", { class: "row" },
      record ? element("a", { href: record }, name) : name,
      element("span", { class: "soft" }, `${job.kind === "ingest" ? "into" : "in"} ${job.collection}`),
      element("span", { class: `status ${job.status}`, role: "status" }, job.status),
      ...buttons,
    );
  }

  bar(job) {
    const { finished, items: total } = job.progress;
    const percent = total ? Math.floor((100 * finished) / total) : ENDED.includes(job.status) ? 100 : 0;
    const fill = element("div", { class: `fill ${job.status}` });
    fill.style.width = `${percent}%`;
    return element("div", {
      class: "meter", role: "progressbar", "aria-valuemin": 0, "aria-valuemax": 100,
      "aria-valuenow": percent, "aria-label": `Items finished of ${job.name}`,
    }, fill);
  }

  line(job) {
    const { finished, items: total, chunks, rate, seconds_left: left, current } = job.progress;
    const parts = job.kind === "ingest"
      ? [`${finished.toLocaleString("en")} of ${count(total, "item")}`, count(chunks, "chunk")]
      : total ? [`${finished.toLocaleString("en")} of ${total.toLocaleString("en")}`] : [];
    if (!ENDED.includes(job.status)) {
      if (rate) parts.push(rate >= 1 ? `${rate.toFixed(1)} items per second` : `${duration(1 / rate)} per item`);
      if (left !== null) parts.push(`about ${duration(left)} left`);
      if (job.status === "queued") parts.push("waits for a worker");
    } else if (job.started) {
      parts.push(`took ${duration((new Date(job.ended) - new Date(job.started)) / 1000)}`);
    }
    return element("p", { class: "soft figures" }, parts.join(" · "),
      current ? element("span", { class: "current", dir: "auto" }, current) : null);
  }

  chips(job) {
    const filled = STATUSES.filter((status) => job.progress.outcomes[status]);
    return element("p", { class: "chips" }, ...filled.map((status) => element("button", {
      type: "button", class: `chip ${status}`, "data-key": `chip-${status}`,
      "aria-pressed": String(this.shown === status), onclick: () => this.filter(status),
    }, `${status} ${job.progress.outcomes[status].toLocaleString("en")}`)));
  }

  table(job) {
    const { results, previous, next, count: number } = job.items;
    if (!results.length) return element("div", {});
    const rows = results.map((item) => element("tr", {},
      element("td", {}, element("span", { class: `status ${item.status}` }, item.status)),
      element("td", { class: "origin", dir: "auto" }, item.origin,
        item.reason ? element("p", { class: "reason" }, item.reason) : null,
        ...item.warnings.map((warning) => element("p", { class: "soft" }, warning.reason))),
      element("td", { class: "number" }, item.chunks ? count(item.chunks, "chunk") : ""),
    ));
    const pager = previous || next ? element("p", { class: "row soft" },
      previous ? this.pager("Previous", this.page - 1) : null,
      `page ${this.page} of ${Math.ceil(number / 50)}`,
      next ? this.pager("Next", this.page + 1) : null,
    ) : null;
    return element("div", {}, element("table", { class: "items" }, element("tbody", {}, ...rows)), ...(pager ? [pager] : []));
  }

  pager(word, page) {
    return element("button", {
      type: "button", class: "button quiet", "data-key": word, onclick: () => this.turn(page),
    }, word);
  }
}

customElements.define("ingest-progress", IngestProgress);
