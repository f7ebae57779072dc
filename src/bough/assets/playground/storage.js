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
    set(name, text) {
      unstored.delete(name);
      try {
        storage().setItem(name, text);
      } catch {
        unstored.set(name, text);
      }
    },
  };
}

export const ofTab = memory(() => sessionStorage);
export const ofBrowser = memory(() => localStorage);
