import { converse } from "./built/conversation.js";

console.log(await converse(...process.argv.slice(2)));
