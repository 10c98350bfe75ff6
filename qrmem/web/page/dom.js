// Makes elements. Every text from the memory is set as text, never as HTML.

import { part } from "./call.js";

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

// A date as people write it; a year or a month alone stays what it is.
export function day(stamp) {
  const at = new Date(stamp);
  return stamp.length < 10 || Number.isNaN(at.getTime()) ? stamp : at.toLocaleDateString(undefined, { dateStyle: "medium" });
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

// A holder that fills itself with rows from the server, part by part.
export async function paged(path, render, what, size = 50, from = 0) {
  const rows = await part(path, from, size);
  return [rows.total, () => long(items(), rows.map(render), rows.total - from,
    async (shown) => (await part(path, from + shown, size)).map(render), what)];
}

export const items = () => make("div", { class: "items" });

// The same for what is here already.
export function folded(all, render, none, what, size = 20) {
  if (!all.length) return quiet(none);
  const part = (from) => all.slice(from, from + size).map(render);
  return long(items(), part(0), all.length, async (from) => part(from), what);
}

// Files of prose often break their lines at a width: what looks so is read as running text. The
// length stays, so places in the text do.
function flowing(text, isCut) {
  return text.replace(/[^\n]+(?:\n[^\n]+)+/g, (block) => {
    const lines = block.split("\n");
    const isLong = (line) => line.length > 50 && line.length < 90;
    const isWrapped = lines.slice(isCut ? 1 : 0, -1).every(isLong) && lines.some(isLong)
      && lines.slice(1).every((line) => /^[\p{L}“"'‘(_]/u.test(line));
    return isWrapped ? lines.join(" ") : block;
  });
}

// A text in which spans are marked: `[[start, end], …]`, in characters as Python counts them.
export function marked(text, spans, isCut = false) {
  const letters = [...flowing(text, isCut)];
  const plain = (from, to) => letters.slice(from, to).join("").replace(/\n{3,}/g, "\n\n");
  const pieces = [];
  let at = 0;
  for (const [start, end] of spans ?? []) {
    if (start < at) continue;
    pieces.push(plain(at, start), make("mark", {}, plain(start, end)));
    at = end;
  }
  pieces.push(plain(at).trimEnd());
  if (typeof pieces[0] === "string") pieces[0] = pieces[0].replace(/^\s*\n/, "");
  return pieces.filter((piece) => piece !== "");
}

export function segmentBox(segment, kind = "", told = "", query = "") {
  const where = [segment.part, `characters ${number(segment.start)}–${number(segment.end)}`];
  return make("div", {},
    make("div", { class: "small" },
      kind ? [chip(kind, kind), " "] : null,
      segmentLink(segment, query), " ", quiet([...where, told].filter(Boolean).join(" · "))),
    make("blockquote", { class: kind }, marked(segment.text, segment.matches, segment.start > 0)));
}

// The id of a turn is made of its number.
const named = (id) => id.replace(/^turn-0*([1-9]\d*)$/, "turn $1");

// Leads to a segment in its document; with a query its words are marked there.
export const segmentLink = (segment, query = "", title = "") => link(`${title || named(segment.document_id)}, segment ${segment.index + 1}`,
  ...["documents", segment.document_id, `${segment.index + 1}`, query].filter(Boolean));
