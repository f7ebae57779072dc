// Building and rearranging what the page shows. Text only ever becomes text nodes.

/** An element with a class and children, or arrays of them; strings become text. */
export function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name in made && !name.startsWith("aria")) made[name] = value;
    else made.setAttribute(name, value);
  }
  for (const child of children.flat()) made.append(child); // one by one: a call takes about a hundred thousand arguments
  return made;
}

/**
 * Make these the children of a parent, in this order. What is in its place already is not touched: to take an element
 * out and put it back would end its transitions and take the focus from it.
 */
export function arrange(parent, nodes) {
  const wanted = new Set(nodes);
  for (const node of [...parent.childNodes]) if (!wanted.has(node)) node.remove();
  let at = parent.firstChild;
  for (const node of nodes) {
    if (node === at) at = at.nextSibling;
    else parent.insertBefore(node, at);
  }
}

/** Let an element have this text. What it had is added to if that will do, so that a selection in it outlives that. */
export function grow(node, text) {
  const had = node.firstChild;
  if (had && text.startsWith(had.data)) had.appendData(text.slice(had.data.length));
  else node.textContent = text;
}

/** Let an element have this text, if it has not: to a live region the same text, written again, is news to be read aloud. */
export function write(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** A button that puts a text into the clipboard, and says whether it did. */
export function copyButton(label, textOf, properties = {}) {
  const button = element("button", { type: "button", ...properties, onclick: async () => {
    button.textContent = (await copied(textOf())) ? "Copied" : "Not allowed here";
    setTimeout(() => { button.textContent = label; }, 2000);
  } }, label);
  button.setAttribute("aria-live", "polite");
  return button;
}

async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch { /* only https and localhost have a clipboard; a selection can be copied everywhere */ }
  const held = document.activeElement;
  const area = element("textarea", { value: text, className: "unseen", readOnly: true });
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  held?.focus();
  return done;
}
