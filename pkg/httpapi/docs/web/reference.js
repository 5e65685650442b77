// The reference: Swagger UI on the OpenAPI document. What it is authorized with
// stays in the tab, as the portal's credential does, which is used without being
// asked for again.
const kept = "authorized";
const portal = sessionStorage.getItem("credential");
const before = JSON.parse(sessionStorage.getItem(kept)) ?? (portal && { [portal.startsWith("cis_") ? "apiKey" : "bearer"]: portal });

const ui = SwaggerUIBundle({
  url: document.getElementById("reference").dataset.document,
  dom_id: "#swagger-ui",
  deepLinking: true,
  docExpansion: "list",
  defaultModelsExpandDepth: 0,
  validatorUrl: null,
  onComplete() {
    for (const [scheme, value] of Object.entries(before ?? {})) ui.preauthorizeApiKey(scheme, value);
    ui.getStore().subscribe(() => {
      const now = Object.entries(ui.authSelectors.authorized().toJS()).map(([scheme, { value }]) => [scheme, value]);
      sessionStorage.setItem(kept, JSON.stringify(Object.fromEntries(now)));
    });
  },
});
