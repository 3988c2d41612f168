/* Following: shows a turn while it is worked on, and hears what else is said. Events are told from
   the first on, so a page that is loaded in the middle shows all that the other one had. */
import { isNearEnd, renew, toEnd } from "./drawing.js";
import { say, show } from "./words.js";

const DELAY_MS = 10000;
const AGAIN_MS = 3000;
const heard = document.getElementById("heard");
// What a reader is not to see of a draft: markers of passages that are not numbered yet.
const MARKERS = /\s*\[C\d+\]/g;

/** Follow the turn of an article until it has ended. */
export function follow(article) {
  if (article.dataset.followed) return;
  article.dataset.followed = "yes";
  new Turn(article);
}

class Turn {
  constructor(article) {
    this.article = article;
    this.line = article.querySelector(".status");
    this.list = article.querySelector(".steps ol");
    this.draft = article.querySelector(".draft");
    this.text = "";
    this.words = say("looking");
    this.started = this.moved = Date.now();
    this.clock = window.setInterval(() => this.tick(), 500);
    this.connect();
  }

  connect() {
    this.source = new EventSource(this.article.dataset.events);
    const events = {
      agent_start: this.begin,
      agent_complete: this.complete,
      error: this.fail,
      token: this.write,
      workflow_complete: this.end,
    };
    for (const [name, listener] of Object.entries(events)) {
      this.source.addEventListener(name, (event) => {
        if (event.data === undefined) this.lose();
        else listener.call(this, JSON.parse(event.data));
      });
    }
  }

  begin({ role, step, attempt }) {
    if (role === "manager") return;
    this.progress(say(`step-${role}`));
    const item = this.item(role, step);
    item.className = "working";
    if (attempt > 1) show(item.querySelector(".seconds"), say("failed"));
  }

  complete({ role, step, seconds, plan }) {
    if (role === "manager") return;
    this.moved = Date.now();
    const item = this.item(role, step);
    item.className = "done";
    show(item.querySelector(".seconds"), seconds >= 0.1 ? `${seconds.toFixed(1)} s` : "");
    // The specialists of an analysis, before they have begun.
    for (const planned of (plan ?? []).flat()) this.item(planned, "");
  }

  fail({ role, step }) {
    const item = this.item(role, step);
    item.className = "failed";
    show(item.querySelector(".seconds"), say("failed"));
  }

  write({ text, replaces }) {
    this.text = (replaces ? "" : this.text) + text;
    const wasNear = isNearEnd();
    // Text, never HTML: it is neither checked nor cleaned yet.
    this.draft.textContent = this.text.replace(MARKERS, "").replaceAll("**", "");
    this.draft.hidden = !this.text;
    this.progress(this.text ? say("writing") : say("again"));
    if (wasNear) toEnd();
  }

  async end() {
    this.close();
    const id = this.article.id;
    await renew({ tell: true });
    const answer = document.getElementById(id)?.querySelector("[data-answer]");
    heard.textContent = answer ? answer.textContent : say("answered");
  }

  // The browser connects again by itself, unless it was refused.
  lose() {
    if (this.source.readyState !== EventSource.CLOSED) return;
    this.close();
    show(this.line, say("lost"));
    window.setTimeout(async () => {
      delete this.article.dataset.followed;
      await renew();
      if (this.article.isConnected) follow(this.article);
    }, AGAIN_MS);
  }

  close() {
    this.source.close();
    window.clearInterval(this.clock);
  }

  progress(words) {
    this.words = words;
    this.moved = Date.now();
    show(this.line, words);
  }

  tick() {
    const now = Date.now();
    if (!this.article.isConnected) {
      this.close();
      return;
    }
    this.line.dataset.seconds = `${Math.round((now - this.started) / 1000)} s`;
    show(this.line, now - this.moved > DELAY_MS ? say("delayed") : this.words);
  }

  // The line of a role's work; one that was planned becomes that of the step.
  item(role, step) {
    const words = say(`step-${role}`) || role;
    let item = this.list.querySelector(`[data-words="${CSS.escape(words)}"]`);
    if (!item) {
      item = document.createElement("li");
      item.dataset.words = words;
      item.className = "queued";
      item.append(words, " ", document.createElement("span"));
      item.querySelector("span").className = "seconds";
      this.list.append(item);
    }
    if (step) item.dataset.step = step;
    return item;
  }
}

/** Hear what staff write, and who answers, while somebody looks. */
export function watch() {
  let source = null;
  const look = () => {
    const address = document.body.dataset.follow;
    if (document.hidden || !address) {
      source?.close();
      source = null;
    } else if (!source || source.readyState === EventSource.CLOSED) {
      const { last } = document.body.dataset;
      source = new EventSource(last ? `${address}?after=${last}` : address);
      // How it stands now is told first, and changes nothing on the page.
      let isFirst = true;
      source.addEventListener("message", () => renew());
      source.addEventListener("status", () => {
        if (!isFirst) renew();
        isFirst = false;
      });
    }
  };
  look();
  document.addEventListener("visibilitychange", look);
  window.setInterval(look, 5 * AGAIN_MS);
}
