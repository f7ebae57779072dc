// The page as a whole: which model, which view, light or dark.

import { call, changeKey, isPassing, showWhetherKeyIsKept } from "./api.js";
import { Chat } from "./chat.js";
import { write } from "./dom.js";
import { prepareEngine, startEngine, stopEngine } from "./engine.js";
import { ofBrowser } from "./storage.js";

const byId = (id) => document.getElementById(id);
const TABS = ["chat", "engine"];

function select(name, focus) {
  for (const each of TABS) {
    const tab = byId(`tab-${each}`);
    tab.setAttribute("aria-selected", String(each === name));
    tab.tabIndex = each === name ? 0 : -1;
    byId(each).hidden = each !== name;
  }
  if (focus) byId(`tab-${name}`).focus();
  history.replaceState(null, "", name === "chat" ? "/" : `/#${name}`);
  if (!chat) { // once there is one, the view is selected again
    if (hasFailed) beginOrRetry();
    return;
  }
  if (name === "chat") chat.showAgain();
  if (name === "engine" && !document.hidden) startEngine();
  else stopEngine();
}

for (const name of TABS) {
  byId(`tab-${name}`).addEventListener("click", () => select(name, false));
  byId(`tab-${name}`).addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step) select(TABS.at((TABS.indexOf(name) + step) % TABS.length), true);
  });
}

// A page that nobody sees does not keep the engine's view from others.
document.addEventListener("visibilitychange", () => {
  if (!chat || byId("engine").hidden) return;
  if (document.hidden) stopEngine();
  else if (byId("engine-closed").hidden) startEngine();
});

// The message that the link leads to is in a view that may be hidden.
document.querySelector(".skip").addEventListener("click", () => select("chat", false));

// Until somebody chooses, the style sheet follows the system; what was chosen earlier theme.js has shown.
byId("theme").addEventListener("click", () => {
  const { dataset } = document.documentElement;
  const shown = dataset.theme ?? (window.matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  dataset.theme = shown === "dark" ? "light" : "dark";
  ofBrowser.set("bough.theme", dataset.theme);
});

byId("change-key").addEventListener("click", async () => {
  write(byId("key-told"), "");
  try {
    if (!(await changeKey())) return;
  } catch (error) {
    write(byId("key-told"), `The key is as before: ${error.message}`);
    return;
  }
  write(byId("connection"), "");
  if (byId("change-key").hidden) document.querySelector("[role=tab][aria-selected=true]").focus();
  if (!chat) beginOrRetry();
  else if (!byId("engine").hidden) {
    stopEngine();
    startEngine();
  }
});
showWhetherKeyIsKept();

let chat = null; // until the page has begun
let hasFailed = false; // for good, unless somebody tries again

/** Show the model and the views, unless this is no longer wanted by the time the server has said what there is. */
async function begin(isWanted) {
  const { data } = await (await call("v1/models")).json();
  const info = await (await call("model_info")).json();
  if (!isWanted()) return;
  byId("model").textContent = byId("model").title = data[0].id;
  document.title = `Bough · ${data[0].id}`;
  chat = new Chat(data[0], info);
  prepareEngine();
  if (!info.is_generation) {
    byId("prompt").disabled = byId("send").disabled = true;
    byId("prompt").placeholder = "This model makes vectors, not text: see API.";
  }
  select(location.hash === "#engine" ? "engine" : "chat", false);
}

const RETRY_MS = 2000;
let attempts = 0;
let nextAttempt;

/** Begin, and go on trying where that may help. What was tried or about to be tried before gives way. */
function beginOrRetry() {
  clearTimeout(nextAttempt);
  attempts += 1;
  hasFailed = false;
  const own = attempts;
  const isWanted = () => own === attempts;
  const tell = (text) => { if (isWanted()) write(byId("connection"), text); };
  begin(isWanted).then(() => tell(""), (error) => {
    const retries = isWanted() && isPassing(error.status);
    if (isWanted()) hasFailed = !retries;
    tell(`Cannot begin: ${error.message}${retries ? "; trying again …" : ". Reload, or choose a view, to try again."}`);
    if (retries) nextAttempt = setTimeout(beginOrRetry, RETRY_MS);
  });
}

beginOrRetry();
