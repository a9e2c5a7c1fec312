"use strict";
(() => {
  const form = document.querySelector(".filter");
  if (form) {
    const [text, kind] = [form.querySelector("input"), form.querySelector("select")];
    const all = [...document.querySelectorAll(".finding")];
    const shown = form.querySelector("output");
    const apply = () => {
      const words = text.value.toLowerCase().split(/\s+/).filter(Boolean);
      let count = 0;
      for (const one of all) {
        const text = one.dataset.text;
        one.hidden = (kind.value && one.dataset.kind !== kind.value) || !words.every((word) => text.includes(word));
        count += one.hidden ? 0 : 1;
      }
      shown.textContent = `${count} of ${all.length} shown`;
    };
    form.hidden = false;
    form.addEventListener("input", apply);
    form.addEventListener("submit", (event) => event.preventDefault());
    apply();
  }
  for (const one of document.querySelectorAll(".command")) {
    const words = one.textContent;
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "Copy";
    button.setAttribute("aria-label", `Copy ${words}`);
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(words);
        button.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(one.querySelector("code"));
        button.textContent = "Selected";
      }
    });
    one.append(button);
  }
  const reveal = () => {
    const found = location.hash && document.getElementById(location.hash.slice(1));
    if (found instanceof HTMLDetailsElement) { found.hidden = false; found.open = true; found.scrollIntoView(); }
  };
  addEventListener("hashchange", reveal);
  addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((one) => { one.open = true; }));
  reveal();
})();
