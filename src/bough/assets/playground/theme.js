// The theme that was chosen earlier, before anything is painted: modules run too late for that.
try {
  const chosen = localStorage.getItem("bough.theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch { /* where storage is blocked, the style sheet follows the system */ }
