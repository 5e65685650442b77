// Search, colours, copying, and one language of each sample. The pages can be read without it.
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

// Every word, or one that means the same, has to occur in a section. Those come first that have it in their title, then
// those whose page has it in its, guides before operations.
const alike = [
  ["pagination", "paging", "pages", "lists"], ["signature", "signed", "hmac", "verify"], ["rotation", "rotate", "rotating"],
  ["throttling", "quota", "rate limit"], ["login", "sign in", "authentication"], ["incremental", "delta", "sync", "copy"],
  ["idempotency", "duplicate", "repeating"], ["backoff", "retry", "retries"], ["upload", "import", "ingest", "putting records"],
  ["sdk", "library", "clients"], ["event", "webhook"], ["breaking", "deprecated", "changelog", "changes"],
];
const meanings = (word) => [word, ...alike.filter((words) => words.some((w) => w.startsWith(word))).flat()];
const search = document.getElementById("search");
const list = document.getElementById("found");
const input = search.querySelector("input");
const docs = search.dataset.docs;
let index;

// sectionsOf reads the sections of a guide. The page of the reference has none.
async function sectionsOf(url) {
  const page = new DOMParser().parseFromString(await (await fetch(url)).text(), "text/html");
  const heads = [...page.querySelectorAll(".guide :is(h1, h2, h3)[id]")];
  return heads.map((head) => {
    let text = "";
    for (let next = head.nextElementSibling; next && !heads.includes(next); next = next.nextElementSibling) text += `${next.textContent} `;
    return { guide: true, title: head.textContent, page: heads[0].textContent, url: `${url}#${head.id}`, text: text.replace(/\s+/g, " ") };
  });
}

// operations reads those of the OpenAPI document, events included.
async function operations() {
  const { paths, webhooks } = await (await fetch(`${docs}../openapi.json`)).json();
  const routes = Object.entries(paths).flatMap(([path, methods]) => Object.entries(methods).map(([method, of]) => [`${method.toUpperCase()} ${path}`, of]));
  routes.push(...Object.entries(webhooks).map(([event, { post }]) => [event, post]));
  return routes.map(([page, of]) => ({ guide: false, title: of.summary, page, url: `${docs}reference#/${of.tags[0]}/${of.operationId}`, text: of.description ?? "" }));
}

async function find() {
  const pages = [docs.replace(/\/$/, ""), ...[...document.querySelectorAll(".side nav a")].map((link) => link.href)];
  index ??= Promise.all([...pages.map(sectionsOf), operations()]);
  const sections = (await index).flat();
  const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
  const has = (text, word) => meanings(word).some((w) => text.toLowerCase().includes(w));
  const rank = ({ title, page, guide }) => words.reduce((sum, w) => sum + has(title, w) * 4 + ((guide || w.includes("/")) && has(page, w)) * 2 + (guide && title === page), guide ? 1 : 0);
  const hits = sections
    .filter((s) => words.every((w) => has(`${s.title} ${s.page} ${s.text}`, w)))
    .sort((a, b) => rank(b) - rank(a))
    .slice(0, 12);
  list.replaceChildren(...(hits.length ? hits.map((s) => hit(s, words[0])) : [line("Nothing found.")]));
  list.togglePopover(words.length > 0);
}

function line(...content) {
  const item = document.createElement("li");
  item.append(...content);
  return item;
}

function hit({ title, page, url, text }, word = "") {
  const link = document.createElement("a");
  const where = document.createElement("small");
  link.href = url;
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
addEventListener("keydown", (event) => {
  const links = [input, ...list.querySelectorAll("a")];
  const at = links.indexOf(document.activeElement);
  const to = { ArrowDown: at + 1, ArrowUp: at - 1 }[event.key] ?? (event.key === "/" && !document.activeElement.matches("input, select, textarea") ? 0 : -1);
  if (!links[to] || (event.key !== "/" && at < 0)) return;
  event.preventDefault();
  links[to].focus();
});
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

// A sample in several languages shows the one that the reader chose last, on this page or another.
const names = { sh: "Shell", python: "Python", javascript: "JavaScript", go: "Go", php: "PHP" };
const tabs = [];
for (const [n, sample] of document.querySelectorAll(".languages").entries()) {
  const choices = document.createElement("div");
  choices.setAttribute("role", "tablist");
  choices.setAttribute("aria-label", "Language");
  for (const block of sample.querySelectorAll(".sample")) {
    const language = block.querySelector("code").className.replace("language-", "");
    const panel = document.createElement("div");
    const tab = document.createElement("button");
    panel.id = `sample-${n}-${language}`;
    panel.setAttribute("role", "tabpanel");
    panel.setAttribute("aria-labelledby", (tab.id = `${panel.id}-tab`));
    tab.type = "button";
    tab.textContent = names[language];
    tab.setAttribute("role", "tab");
    tab.setAttribute("aria-controls", panel.id);
    tab.addEventListener("click", () => choose(language, tab));
    const name = block.previousElementSibling; // the file's
    block.replaceWith(panel);
    panel.append(...(name?.matches("p") ? [name] : []), block);
    choices.append(tab);
    tabs.push({ language, tab, panel });
  }
  choices.addEventListener("keydown", (event) => {
    const all = [...choices.children];
    const at = all.indexOf(document.activeElement);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: -1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    all.at(to % all.length).focus();
    document.activeElement.click();
  });
  sample.prepend(choices);
}

function show(language) {
  for (const { language: own, tab, panel } of tabs) {
    tab.setAttribute("aria-selected", own === language);
    tab.tabIndex = own === language ? 0 : -1;
    panel.hidden = own !== language;
  }
}

// choose keeps the chosen tab where it is on the screen, though the samples above it get longer or shorter.
function choose(language, tab) {
  const top = tab.getBoundingClientRect().top;
  localStorage.setItem("language", language);
  show(language);
  scrollBy(0, tab.getBoundingClientRect().top - top);
}
const kept = localStorage.getItem("language");
show(Object.hasOwn(names, kept) ? kept : "sh");
