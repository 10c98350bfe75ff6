// Makes elements. Every text from the memory is set as text, never as HTML.

const LOCAL = "en";

export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "onclick") element.addEventListener("click", value);
    else if (value !== null && value !== "") element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== ""));
  return element;
}

export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

export const path = (...parts) => `#/${parts.map(encodeURIComponent).join("/")}`;
export const link = (text, ...parts) => make("a", { href: path(...parts) }, text);
export const quiet = (...text) => make("span", { class: "quiet" }, ...text);
export const about = (...parts) => make("p", { class: "about" }, parts.filter(Boolean).join(" · "));
export const chip = (text, kind = "") => make("span", { class: `chip ${kind}`.trim() }, text);
export const empty = (...said) => make("p", { class: "empty" }, ...said);
export const code = (text) => make("code", {}, text);
export const entityLink = (key, name) => link(name || key, "entities", key);
export const number = (value) => value.toLocaleString(LOCAL);
export const count = (value, what) => `${number(value)} ${what}${value === 1 ? "" : "s"}`;

export function when(stamp) {
  const at = new Date(stamp);
  return Number.isNaN(at.getTime()) ? stamp : at.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
}

export function table(caption, heads, rows, { numbers = [], classes = {}, foot = null } = {}) {
  const kind = (at) => (numbers.includes(at) ? "number" : classes[at] ?? "");
  const cell = (tag, value, at) => make(tag, { class: kind(at), scope: tag === "th" ? "col" : null }, value);
  const line = (tag) => (values) => make("tr", {}, values.map((value, at) => cell(tag, value, at)));
  return make("div", { class: "wide", tabindex: "0", role: "region", "aria-label": caption },
    make("table", {}, make("thead", {}, line("th")(heads)), make("tbody", {}, rows.map(line("td"))),
      foot ? make("tfoot", {}, line("td")(foot)) : null));
}

export function list(items, none) {
  return items.length ? make("ul", { class: "plain" }, items.map((item) => make("li", {}, item))) : quiet(none);
}

// Shows a first part of a long list; a button brings the next one. `next` returns elements.
export function long(holder, first, total, next, what) {
  let shown = first.length;
  holder.append(...first);
  if (shown >= total) return holder;
  const said = () => `Show more: ${number(shown)} of ${count(total, what)} shown`;
  const button = make("button", { class: "more", type: "button" }, said());
  button.addEventListener("click", async () => {
    button.disabled = true;
    const more = await next(shown);
    holder.append(...more);
    more[0]?.querySelector("a, summary")?.focus();
    shown += more.length;
    if (shown >= total || !more.length) button.remove();
    else { button.textContent = said(); button.disabled = false; }
  });
  return make("div", {}, holder, button);
}

export const items = () => make("div", { class: "items" });

// The same for what is here already.
export function folded(all, render, none, what, size = 20) {
  if (!all.length) return quiet(none);
  const part = (from) => all.slice(from, from + size).map(render);
  return long(items(), part(0), all.length, async (from) => part(from), what);
}

export function segmentBox(segment, kind = "", told = "", marked = false) {
  const where = [segment.part, `characters ${number(segment.start)}–${number(segment.end)}`];
  return make("div", { class: marked ? "target" : "" },
    make("div", { class: "small" },
      kind ? [chip(kind, kind), " "] : null,
      link(`${segment.document_id}, segment ${segment.index + 1}`, "documents", segment.document_id, `${segment.index + 1}`), " ",
      quiet([...where, told].filter(Boolean).join(" · "))),
    make("blockquote", { class: kind }, segment.text));
}
