// What the page remembers. Where storage is blocked or full, that lasts as long as the page.

/** Texts by name, in one of the browser's storages; even to ask for that throws where it is blocked. */
function memory(storage) {
  const unstored = new Map();
  return {
    get(name) {
      try {
        return unstored.get(name) ?? storage().getItem(name);
      } catch {
        return null;
      }
    },
    remove(name) {
      unstored.delete(name);
      try {
        storage().removeItem(name);
      } catch { /* nothing is stored where that is blocked */ }
    },
    /** Returns whether the text outlives the page. */
    set(name, text) {
      unstored.delete(name);
      try {
        storage().setItem(name, text);
        return true;
      } catch {
        unstored.set(name, text);
        try {
          storage().removeItem(name); // an earlier text would come back with a reload
        } catch { /* nothing is stored where that is blocked */ }
        return false;
      }
    },
  };
}

export const ofTab = memory(() => sessionStorage);
export const ofBrowser = memory(() => localStorage);

/** What JSON the tab has under a name; null if there is none. */
export function remembered(name) {
  try {
    return JSON.parse(ofTab.get(name));
  } catch {
    return null;
  }
}
