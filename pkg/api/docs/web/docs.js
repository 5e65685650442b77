// Search, colours and copying. The pages can be read without it.
const root = document.documentElement;

// The colours are those that the portal keeps.
const theme = document.querySelector(".theme");
const choice = theme.querySelector("select");
function colour() {
  if (choice.value) root.dataset.theme = choice.value;
  else delete root.dataset.theme;
}
choice.value = localStorage.getItem("theme") ?? "";
choice.addEventListener("change", () => {
  localStorage.setItem("theme", choice.value);
  colour();
});
colour();
theme.hidden = false;

// Every word has to occur in a section or its title; those with more of them in the title come first.
const search = document.getElementById("search");
const list = document.getElementById("found");
const input = search.querySelector("input");
let index;

async function find() {
  index ??= fetch(search.dataset.docs + "search.json").then((answer) => answer.json());
  const sections = await index;
  const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
  const rank = ({ title, page }) => words.filter((w) => title.toLowerCase().includes(w)).length * 2 + words.filter((w) => page.toLowerCase().includes(w)).length;
  const hits = sections
    .filter((s) => words.every((w) => `${s.title} ${s.page} ${s.text}`.toLowerCase().includes(w)))
    .sort((a, b) => rank(b) - rank(a))
    .slice(0, 12);
  list.replaceChildren(...(hits.length ? hits.map((s) => hit(s, words[0])) : [line("Nothing found.")]));
  list.hidden = words.length === 0;
}

function line(...content) {
  const item = document.createElement("li");
  item.append(...content);
  return item;
}

function hit({ title, page, path, text }, word = "") {
  const link = document.createElement("a");
  const where = document.createElement("small");
  link.href = search.dataset.docs + path.replace(/^index/, "");
  link.textContent = title;
  const at = Math.max(text.toLowerCase().indexOf(word) - 30, 0);
  where.textContent = `${page === title ? "" : `${page}: `}${at ? "…" : ""}${text.slice(at, at + 90)}`;
  return line(link, where);
}

search.addEventListener("submit", (event) => {
  event.preventDefault();
  list.querySelector("a")?.click();
});
input.addEventListener("input", find);
search.hidden = false;

for (const block of document.querySelectorAll(".guide pre")) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "small copy";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(block.textContent);
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 2000);
  });
  const sample = document.createElement("div");
  sample.className = "sample";
  block.replaceWith(sample);
  sample.append(button, block);
}
