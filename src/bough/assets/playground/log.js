// Where the messages are shown: its end is followed while it is in sight; and what is said below them, or only aloud.

import { element } from "./dom.js";

const byId = (id) => document.getElementById(id);

/** Whether the end of the conversation is followed, as it is since it was last in sight. */
let follows = true;

/** Note whether the end is in sight; of a log that is hidden all measures are 0. */
function noteEnd() {
  const log = byId("messages");
  if (log.clientHeight) follows = log.scrollHeight - log.scrollTop - log.clientHeight < 60;
}

function showEnd() {
  byId("messages").scrollTop = byId("messages").scrollHeight;
}

/** Show the end, and follow it from now on. */
export function followEnd() {
  follows = true;
  showEnd();
}

/** Show the end if it is followed. */
export function keepEnd() {
  if (follows) showEnd();
}

/** Let the log hold something else, with its end in sight if that is followed and there is one, else what was in sight. */
export function rearrange(change, hasEnd) {
  const log = byId("messages");
  const { scrollTop } = log;
  change(log);
  log.scrollTop = follows && hasEnd ? log.scrollHeight : scrollTop;
  noteEnd(); // fewer messages may leave nothing to scroll
}

let complaint = null; // the last

/** Say below the messages what went wrong, until they are shown anew. */
export function complain(text) {
  complaint?.remove();
  complaint = element("p", { className: "error", role: "alert" }, text);
  byId("messages").append(complaint);
  followEnd();
}

/** Say something to who cannot see it. */
export function say(text) {
  byId("announcer").textContent = text;
}

/** Make the log know where its end is. */
export function prepareLog() {
  byId("messages").addEventListener("scroll", noteEnd);
  byId("messages").addEventListener("toggle", noteEnd, true); // thoughts that are unfolded may move the end away
}
