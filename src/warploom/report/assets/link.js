"use strict";
// Pointing at something, or focusing it, lights what it is about: data-link names data-name.
(function () {
  const named = new Map();
  for (const each of document.querySelectorAll("[data-name]")) named.set(each.dataset.name, each);
  const light = (source, on) => {
    for (const name of (source.dataset.link || "").split(" ").filter(Boolean))
      named.get(name)?.classList.toggle("linked", on);
  };
  let focused = null, pointed = null;
  const draw = () => {
    for (const each of document.querySelectorAll(".linked")) each.classList.remove("linked");
    const source = pointed || focused;
    if (source) light(source, true);
  };
  const of = (target) => target.closest ? target.closest("[data-link]") : null;
  document.addEventListener("pointerover", (event) => { pointed = of(event.target); draw(); });
  document.documentElement.addEventListener("pointerleave", () => { pointed = null; draw(); });
  document.addEventListener("focusin", (event) => { focused = of(event.target); pointed = null; draw(); });
  document.addEventListener("focusout", () => { focused = null; draw(); });
  document.documentElement.dataset.ready = "yes";
})();
