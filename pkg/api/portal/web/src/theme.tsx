// The colour scheme: the system's, unless the user chooses one.
import { useState } from "preact/hooks";

const storage = "theme";

function apply(theme: string) {
  if (theme === "") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}

apply(localStorage.getItem(storage) ?? "");

export function ThemeSwitch() {
  const [theme, setTheme] = useState(localStorage.getItem(storage) ?? "");
  const choose = (next: string) => {
    localStorage.setItem(storage, next);
    apply(next);
    setTheme(next);
  };
  return (
    <label class="theme">
      Colours{" "}
      <select value={theme} onChange={(e) => choose(e.currentTarget.value)}>
        <option value="">as the system</option>
        <option value="light">light</option>
        <option value="dark">dark</option>
      </select>
    </label>
  );
}
