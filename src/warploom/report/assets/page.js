"use strict";
// The theme: the reader's own until the button is pressed; then light, dark and back.
(function () {
  const button = document.getElementById("theme");
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const now = () => root.dataset.theme || (system.matches ? "dark" : "light");
  const say = () => { button.textContent = now() === "dark" ? "Light theme" : "Dark theme"; };
  button.addEventListener("click", () => { root.dataset.theme = now() === "dark" ? "light" : "dark"; say(); });
  system.addEventListener("change", say);
  say();
})();
