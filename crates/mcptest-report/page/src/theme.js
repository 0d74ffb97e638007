// Light and dark: the system's choice, until the reader makes another one.

const KEY = "mcptest-theme";

/** Starts with the remembered choice, and switches with a button. */
export function startTheme(button) {
  const remembered = read();
  if (remembered) document.documentElement.dataset.theme = remembered;
  const show = () => {
    const dark = isDark();
    button.textContent = dark ? "☀" : "☾";
    button.setAttribute("aria-pressed", String(dark));
  };
  button.addEventListener("click", () => {
    const next = isDark() ? "light" : "dark";
    document.documentElement.dataset.theme = next;
    try {
      localStorage.setItem(KEY, next);
    } catch {
      // A file opened from disk may have no storage: the choice then holds for this page.
    }
    show();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
  show();
}

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

function read() {
  try {
    const chosen = localStorage.getItem(KEY);
    return chosen === "dark" || chosen === "light" ? chosen : null;
  } catch {
    return null;
  }
}
