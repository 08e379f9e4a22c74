/** Light, dark, or what the system says. The choice stays in this browser. */

import { find } from "./dom";

const CHOICES = ["system", "light", "dark"] as const;
type Theme = (typeof CHOICES)[number];
const KEY = "journee-theme";

function stored(): Theme {
  try {
    return CHOICES.find((choice) => choice === localStorage.getItem(KEY)) ?? "system";
  } catch {
    return "system"; // storage may be forbidden
  }
}

function store(theme: Theme): void {
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    return; // then the choice ends with the page
  }
}

export function startTheme(): void {
  const button = find("theme", HTMLButtonElement);
  let theme = stored();
  const show = (): void => {
    if (theme === "system") delete document.documentElement.dataset["theme"];
    else document.documentElement.dataset["theme"] = theme;
    button.textContent = `Theme: ${theme}`;
  };
  button.addEventListener("click", () => {
    theme = CHOICES[(CHOICES.indexOf(theme) + 1) % CHOICES.length] ?? "system";
    store(theme);
    show();
  });
  show();
}
