/* Widget: a button on somebody's page that opens the chat in a frame of its own.

   <script src=".../widget.js" data-key="..." async></script>, and if wished data-title, data-colour,
   data-side="left", data-language="de", data-theme="dark". The page around sees the button and the
   frame from outside; what is said in the frame is on another origin. */
"use strict";

(() => {
  const script = document.currentScript;
  if (!script?.dataset.key || document.getElementById("docent-widget")) return;
  const { key, title, colour, color, side, language, theme } = script.dataset;
  const home = new URL(script.src).origin;
  const WORDS = {
    en: ["Ask a question", "Close"],
    de: ["Frage stellen", "Schließen"],
    es: ["Hacer una pregunta", "Cerrar"],
    fr: ["Poser une question", "Fermer"],
    ru: ["Задать вопрос", "Закрыть"],
    zh: ["提问", "关闭"],
    pl: ["Zadaj pytanie", "Zamknij"],
    cs: ["Položit otázku", "Zavřít"],
  };
  const spoken = (language || document.documentElement.lang || navigator.language).toLowerCase();
  const [ask, close] = WORDS[spoken.split("-")[0]] ?? WORDS.en;
  const called = title || ask;
  const OPEN = `docent-open-${key}`;

  const STYLE = `
    :host { all: initial; --colour: #1f5f8b; --on: #fff; color-scheme: light dark; }
    :host([data-theme="light"]) { color-scheme: light; }
    :host([data-theme="dark"]) { color-scheme: dark; }
    * { box-sizing: border-box; font: 500 16px/1.3 system-ui, sans-serif; }
    [hidden] { display: none !important; }
    .open { position: fixed; z-index: 2147483000; inset-block-end: 20px; inset-inline-end: 20px;
      display: flex; gap: 10px; align-items: center; min-height: 52px; padding: 0 20px; border: 0;
      border-radius: 26px; background: var(--colour); color: var(--on); cursor: pointer;
      box-shadow: 0 4px 18px rgb(0 0 0 / .28); max-width: calc(100vw - 40px); }
    .panel { position: fixed; z-index: 2147483001; inset-block-end: 20px; inset-inline-end: 20px;
      width: min(420px, calc(100vw - 40px)); height: min(680px, calc(100dvh - 40px));
      display: flex; flex-direction: column; overflow: hidden; border-radius: 14px;
      background: Canvas; box-shadow: 0 8px 40px rgb(0 0 0 / .35); }
    .left { inset-inline: 20px auto; }
    header { display: flex; align-items: center; gap: 8px; min-height: 48px; padding: 0 4px 0 16px;
      background: var(--colour); color: var(--on); }
    h2 { flex: 1; margin: 0; font-weight: 600; overflow: hidden; text-overflow: ellipsis;
      white-space: nowrap; }
    .close { width: 44px; height: 44px; border: 0; border-radius: 8px; background: transparent;
      color: inherit; cursor: pointer; display: grid; place-items: center; }
    iframe { flex: 1; width: 100%; border: 0; }
    .open:focus-visible { outline: 3px solid Highlight; outline-offset: 3px; }
    .close:focus-visible { outline: 3px solid currentColor; outline-offset: -4px; }
    @media (max-width: 600px), (max-height: 420px) {
      .panel { inset: 0; width: 100%; height: 100dvh; border-radius: 0; }
    }
    @media (prefers-reduced-motion: no-preference) { .panel { animation: rise .16s ease-out; } }
    @keyframes rise { from { opacity: 0; transform: translateY(12px); } }
    @media print { .open, .panel { display: none; } }`;

  function made(tag, attributes = {}, ...inner) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...inner);
    return element;
  }

  function drawn(path) {
    const NS = "http://www.w3.org/2000/svg";
    const svg = document.createElementNS(NS, "svg");
    const line = document.createElementNS(NS, "path");
    const look = { width: "22", height: "22", viewBox: "0 0 24 24", fill: "none", "aria-hidden": "true" };
    for (const [name, value] of Object.entries(look)) svg.setAttribute(name, value);
    const stroke = { d: path, stroke: "currentColor", "stroke-width": "2", "stroke-linecap": "round" };
    for (const [name, value] of Object.entries(stroke)) line.setAttribute(name, value);
    svg.append(line);
    return svg;
  }

  /* Black or white, whichever is read more easily on a colour (WCAG's relative luminance). */
  function readable(wanted) {
    const context = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    context.fillStyle = wanted;
    context.fillRect(0, 0, 1, 1);
    const [red, green, blue] = [...context.getImageData(0, 0, 1, 1).data].map((part) => {
      const share = part / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 ? "#000" : "#fff";
  }

  function start() {
    const host = made("div", { id: "docent-widget" });
    const root = host.attachShadow({ mode: "open" });
    // Not an element: the policy of the page may allow no styles within it.
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(STYLE);
    root.adoptedStyleSheets = [sheet];
    if (theme) host.dataset.theme = theme;
    const wanted = colour || color || "";
    if (wanted && CSS.supports("color", wanted)) {
      host.style.setProperty("--colour", wanted);
      host.style.setProperty("--on", readable(wanted));
    }

    const at = side === "left" ? " left" : "";
    const more = { "aria-haspopup": "dialog", "aria-expanded": "false" };
    const opener = made("button", { type: "button", class: `open${at}`, ...more });
    opener.append(drawn("M4 5h16v11H9l-5 4z"), called);
    const closer = made("button", { type: "button", class: "close", "aria-label": close });
    closer.append(drawn("M6 6l12 12M18 6L6 18"));
    const heading = made("h2", { id: "title" }, called);
    const panel = made("div", { class: `panel${at}`, role: "dialog", "aria-labelledby": "title" });
    panel.append(made("header", {}, heading, closer));
    panel.hidden = true;
    root.append(opener, panel);
    let frame = null;

    function remember(isOpen) {
      try {
        if (isOpen) sessionStorage.setItem(OPEN, "yes");
        else sessionStorage.removeItem(OPEN);
      } catch {
        /* The next page begins with the button. */
      }
    }

    function show(focus) {
      if (!frame) {
        const query = language ? `?language=${encodeURIComponent(language)}` : "";
        // Docent answers the pages of its sites alone, so it has to hear which page this is.
        const more = { referrerpolicy: "origin", allow: "clipboard-write" };
        frame = made("iframe", { src: `${home}/widget/${key}/${query}`, title: called, ...more });
        panel.append(frame);
      }
      panel.hidden = false;
      opener.hidden = true;
      opener.setAttribute("aria-expanded", "true");
      remember(true);
      if (focus) frame.focus();
    }

    function hide() {
      panel.hidden = true;
      opener.hidden = false;
      opener.setAttribute("aria-expanded", "false");
      remember(false);
      opener.focus();
    }

    opener.addEventListener("click", () => show(true));
    closer.addEventListener("click", hide);
    panel.addEventListener("keydown", (event) => {
      if (event.key === "Escape") hide();
    });
    window.addEventListener("message", (event) => {
      const isOurs = frame && event.source === frame.contentWindow && event.origin === home;
      if (isOurs && event.data === "docent:close") hide();
    });
    document.body.append(host);
    try {
      if (sessionStorage.getItem(OPEN)) show(false);
    } catch {
      /* It begins with the button. */
    }
  }

  if (document.body) start();
  else document.addEventListener("DOMContentLoaded", start);
})();
