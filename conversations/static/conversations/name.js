/* Name: what the conversation is called in its address. A page that is loaded again before the
   first message was taken does not know it: the browser does, which still holds the message. */
const named = /\/c\/([\w-]+)\/$/.exec(location.pathname)?.[1];
const isWaiting = named && sessionStorage.getItem(`pending:${named}`);

export const name = isWaiting ? named : document.body.dataset.talk;
export const address = isWaiting ? location.pathname : document.body.dataset.address;

for (const field of document.querySelectorAll("[name=conversation]")) field.value = name;
