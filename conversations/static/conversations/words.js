/* Words: what the scripts say, in the language of the page, which brought them along. */
const WORDS = JSON.parse(document.body.dataset.words);

/** Return the sentence of a name, its values filled in. */
export function say(name, values = {}) {
  return (WORDS[name] ?? "").replace(/\{(\w+)\}/g, (_, key) => values[key] ?? "");
}

/** Show text where it is another: a screen reader would read it anew with every event. */
export function show(element, text) {
  if (element && element.textContent !== text) element.textContent = text;
}
