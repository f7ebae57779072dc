// The page as a whole: which model, which view, light or dark.

import { call } from "./api.js";
import { startChat } from "./chat.js";
import { startEngine, stopEngine, watchTree } from "./engine.js";
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
  if (byId("engine").hidden) return;
  if (document.hidden) stopEngine();
  else if (byId("engine-closed").hidden) startEngine();
});

// The message that the link leads to is in a view that may be hidden.
document.querySelector(".skip").addEventListener("click", () => select("chat", false));

const THEME = "bough.theme";
const dark = window.matchMedia("(prefers-color-scheme: dark)");

function showTheme() {
  document.documentElement.dataset.theme = ofBrowser.get(THEME) ?? (dark.matches ? "dark" : "light");
}

byId("theme").addEventListener("click", () => {
  ofBrowser.set(THEME, document.documentElement.dataset.theme === "dark" ? "light" : "dark");
  showTheme();
});
dark.addEventListener("change", showTheme);
showTheme();

async function begin() {
  const { data } = await (await call("/v1/models")).json();
  const info = await (await call("/model_info")).json();
  byId("model").textContent = `· ${data[0].id}`;
  document.title = `Bough · ${data[0].id}`;
  startChat(data[0], info);
  watchTree();
  if (!info.is_generation) {
    byId("prompt").disabled = byId("send").disabled = true;
    byId("prompt").placeholder = "This model makes vectors, not text: see API.";
  }
  select(location.hash === "#engine" ? "engine" : "chat", false);
}

const RETRY_MS = 2000;

function beginOrRetry() {
  begin().then(() => { byId("connection").textContent = ""; }, (error) => {
    const retries = error.status === 0 || error.status >= 500;
    byId("connection").textContent = `Cannot begin: ${error.message}${retries ? "; trying again …" : ". Reload to try again."}`;
    if (retries) setTimeout(beginOrRetry, RETRY_MS);
  });
}

beginOrRetry();
