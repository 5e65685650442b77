// The reference: Swagger UI on the OpenAPI document. What it is authorized with
// stays in the tab, as the portal's credential does, which is used without being
// asked for again.
const kept = "authorized";
const portal = sessionStorage.getItem("credential");
const before = JSON.parse(sessionStorage.getItem(kept)) ?? (portal && { [portal.startsWith("cis_") ? "apiKey" : "bearer"]: portal });

// In the button of an operation Swagger UI has a link, which screen readers miss there.
const plain = ({ React }) => ({ components: { DeepLink: ({ text }) => React.createElement("span", null, text) } });

// It leaves fields and buttons without a name, what is wide without the keyboard, and a heading at
// the level of another.
const root = document.getElementById("swagger-ui");
new MutationObserver(() => {
  for (const field of root.querySelectorAll("tr[data-param-name] :is(select, textarea):not([aria-label])")) field.ariaLabel = field.closest("tr").dataset.paramName;
  for (const button of root.querySelectorAll(".copy-to-clipboard > button:not([aria-label])")) button.ariaLabel = "Copy";
  for (const text of root.querySelectorAll("pre.microlight:not([tabindex])")) text.tabIndex = 0;
  root.querySelector(".models > h4")?.setAttribute("aria-level", "2");
}).observe(root, { childList: true, subtree: true });

const ui = SwaggerUIBundle({
  url: document.getElementById("reference").dataset.document,
  dom_id: "#swagger-ui",
  deepLinking: true,
  docExpansion: "list",
  defaultModelsExpandDepth: 0,
  validatorUrl: null,
  plugins: [plain],
  onComplete() {
    for (const [scheme, value] of Object.entries(before ?? {})) ui.preauthorizeApiKey(scheme, value);
    ui.getStore().subscribe(() => {
      const now = Object.entries(ui.authSelectors.authorized().toJS()).map(([scheme, { value }]) => [scheme, value]);
      sessionStorage.setItem(kept, JSON.stringify(Object.fromEntries(now)));
    });
  },
});
