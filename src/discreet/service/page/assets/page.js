// What the page does in addition to htmx: the editor in place of the text area, charts, and copies of secrets.
// It makes no code from text and loads nothing; without it every form still works.
"use strict";

const dark = window.matchMedia("(prefers-color-scheme: dark)");
const colours = () => JSON.parse(document.body.dataset.charts)[dark.matches ? "dark" : "light"];

function fitted(spec, width) {
  const inner = spec.vconcat;
  if (inner) return { ...spec, vconcat: inner.map((one) => ({ ...one, width: Math.min(one.width, Math.max(120, width - 150)) })) };
  return { ...spec, width: Math.min(Math.max(spec.width, 560), width) };
}

async function draw(host) {
  const spec = fitted(JSON.parse(host.dataset.spec), host.clientWidth - 4);
  host.replaceChildren();
  const view = await DiscreetCharts.draw(host, spec, { ...colours(), font: getComputedStyle(host).fontFamily });
  const drawn = host.querySelector("svg");
  drawn?.setAttribute("aria-hidden", "true");
  host.dataset.drawn = "yes";
  return view;
}

function drawAll(root) {
  if (!window.DiscreetCharts) return;
  for (const host of root.querySelectorAll(".chart[data-spec]")) draw(host);
}

function schemaOf(form) {
  const tables = JSON.parse(form.dataset.schema);
  return Object.fromEntries(
    Object.entries(tables).map(([name, columns]) => [
      name,
      columns.map((column) => ({ label: column.name, detail: column.type, type: "property" })),
    ]),
  );
}

function edit(part) {
  const area = part.querySelector("textarea");
  const host = part.querySelector(".editor");
  const form = part.closest("form[data-schema]");
  if (!form || !window.DiscreetEditor) return;
  const label = document.querySelector(`label[for="${area.id}"]`);
  const view = DiscreetEditor.mount(host, {
    text: area.value,
    schema: schemaOf(form),
    label: label ? label.textContent : "SQL query",
    description: "SQL editor. Control and Enter asks. Escape, then Tab, leaves it.",
    change: (text) => {
      area.value = text;
      area.dispatchEvent(new Event("input", { bubbles: true }));
    },
    submit: () => form.querySelector("button[data-asks], button.main").click(),
  });
  area.hidden = true;
  label?.addEventListener("click", () => view.focus());
  form.addEventListener("click", (event) => {
    const inserted = event.target.closest("[data-insert]");
    if (inserted) insert(view, inserted.dataset.insert);
  });
  document.querySelectorAll(".schema [data-insert]").forEach((button) => {
    button.addEventListener("click", () => insert(view, button.dataset.insert));
  });
}

function insert(view, text) {
  view.dispatch(view.state.replaceSelection(text));
  view.focus();
}

function copied(event) {
  const button = event.target.closest("[data-copy]");
  if (!button || !navigator.clipboard) return;
  const text = document.getElementById(button.dataset.copy).textContent;
  navigator.clipboard.writeText(text).then(() => { button.textContent = "Copied"; });
}

function once(event) {
  const form = event.target;
  if (form.dataset.sent) event.preventDefault();
  else if (!form.hasAttribute("hx-post")) form.dataset.sent = "yes";
}

document.addEventListener("DOMContentLoaded", () => {
  document.querySelectorAll(".query").forEach(edit);
  drawAll(document);
  document.addEventListener("click", copied);
  document.addEventListener("submit", once);
  document.addEventListener("htmx:afterSwap", (event) => drawAll(event.target));
  dark.addEventListener("change", () => drawAll(document));
  window.addEventListener("pageshow", () => document.querySelectorAll("form[data-sent]").forEach((form) => delete form.dataset.sent));
});
