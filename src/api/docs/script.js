// Searches the page, gives its samples the address it is served from, and copies them. The page is
// complete without it.
"use strict";

const search = document.getElementById("search");
const places = [...document.querySelectorAll("article.operation")];
const entries = new Map(
  [...document.querySelectorAll("nav li[data-of]")].map((it) => [it.dataset.of, it]),
);

const none = document.createElement("p");
none.textContent = "No operation matches.";
none.hidden = true;
document.querySelector("main").prepend(none);

function find() {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  document.body.classList.toggle("searching", words.length > 0);
  for (const place of places) {
    const text = place.textContent.toLowerCase();
    const hidden = !words.every((word) => text.includes(word));
    place.hidden = hidden;
    const entry = entries.get(place.id);
    if (entry) entry.hidden = hidden;
  }
  for (const section of document.querySelectorAll("section.tag")) {
    section.hidden = words.length > 0 && !section.querySelector("article:not([hidden])");
  }
  none.hidden = words.length === 0 || places.some((place) => !place.hidden);
}

search.addEventListener("input", find);
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && document.activeElement !== search) {
    event.preventDefault();
    search.focus();
  }
  if (event.key === "Escape" && document.activeElement === search) {
    search.value = "";
    find();
  }
});

for (const code of document.querySelectorAll(".sample code")) {
  code.textContent = code.textContent.replaceAll("http://127.0.0.1:8080", location.origin);
}

for (const sample of document.querySelectorAll(".sample")) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    const code = sample.querySelector("code");
    try {
      await navigator.clipboard.writeText(code.textContent);
      button.textContent = "Copied";
    } catch {
      // Browsers give access to the clipboard only over TLS and on localhost.
      getSelection().selectAllChildren(code);
      button.textContent = "Selected";
    }
    setTimeout(() => (button.textContent = "Copy"), 1500);
  });
  sample.append(button);
}
