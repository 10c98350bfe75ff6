// Statements with their dates and places; where it is allowed, with what changes, ends, deletes and restores them.

import { call } from "./call.js";
import { chip, day, link, make, quiet } from "./dom.js";

export const times = (fact) => [fact.said_at ? `said ${day(fact.said_at)}` : "", fact.valid_from ? `${fact.is_ahead ? "not yet: " : ""}from ${fact.valid_from}` : "",
  fact.valid_until ? `until ${fact.valid_until}` : ""].filter(Boolean).join(", ");

const isOver = (fact) => Boolean(fact.superseded_by)
  || (fact.valid_until !== "" && fact.valid_until < new Date().toISOString().slice(0, fact.valid_until.length));

export function factBox(fact, write) {
  const place = ["documents", fact.document_id, ...(fact.index === undefined ? [] : [`${fact.index + 1}`])];
  const box = make("div", { class: "fact" }, isOver(fact) ? [chip("superseded", "dropped"), " ", make("s", {}, fact.description)] : fact.description, " ",
    make("span", { class: "small" }, fact.head ? [quiet(`${fact.head} – ${fact.tail} · `)] : null, link(times(fact) || "source", ...place)), " ",
    fact.then ? make("p", { class: "small" }, `${fact.superseded_at ? `Since ${day(fact.superseded_at)}` : "Now"}: ${fact.then}`) : null);
  if (write) box.append(changing(fact, box));
  return box;
}

// The form is made when it is opened: a list may hold many facts.
function changing(fact, box) {
  const details = make("details", { class: "small" }, make("summary", { "aria-label": `Change: ${fact.description}` }, "Change"));
  details.addEventListener("toggle", () => {
    if (details.open && details.childElementCount === 1) details.append(form(fact, box));
  });
  return details;
}

function form(fact, box) {
  const text = make("textarea", { rows: "2", "aria-label": "What it says" });
  text.value = fact.description;
  text.hidden = fact.description.endsWith("…"); // it is shown cut, and would be kept cut
  const date = (name) => make("input", { size: "10", placeholder: "2026-05", autocomplete: "off", "aria-label": name });
  const [from, until] = [date("Holds from"), date("Holds until")];
  [from.value, until.value] = [fact.valid_from, fact.valid_until];
  let there = box; // what stands in the list now
  const wrong = make("p", { class: "error", role: "alert", hidden: "hidden" });
  const address = `/facts/${encodeURIComponent(fact.id)}`;
  const trying = async (work) => {
    try {
      await work();
      document.getElementById("said").textContent = "done";
    } catch (error) {
      wrong.textContent = error.message;
      wrong.hidden = false;
      if (!wrong.isConnected) there.append(wrong);
    }
  };
  const light = (words, work) => {
    const button = make("button", { type: "button", class: "light" }, words);
    button.addEventListener("click", () => trying(work));
    return button;
  };
  // What was decided stands there with a button that takes it back.
  const restore = light("Undo all edits", async () => replaced(await call(`${address}/restore`, {})));
  const replaced = (now, ...more) => {
    const shown = now ? factBox({ ...fact, ...now }, true) : make("div", { class: "fact" }, chip("deleted", "dropped"), " ", make("s", {}, fact.description));
    shown.append(...more);
    there.replaceWith(shown);
    there = shown;
    (more[0]?.querySelector("button") ?? shown.querySelector("summary")).focus();
  };
  const decided = (now) => replaced(now, make("p", {}, restore));
  const made = make("form", { class: "changing" }, text,
    make("p", {}, make("label", {}, "Holds from ", from), " ", make("label", {}, "until ", until)), wrong,
    make("div", { class: "decide" }, make("button", { class: "strong" }, "Save"),
      light("It is no longer true", async () => decided(await call(`${address}/end`, { on: "" }))),
      light("Delete", async () => { await call(address, undefined, "DELETE"); decided(null); })));
  made.addEventListener("submit", (event) => {
    event.preventDefault();
    const changed = ({ value }, before) => (value.trim() === before ? null : value.trim());
    const body = { text: changed(text, fact.description), valid_from: changed(from, fact.valid_from), valid_until: changed(until, fact.valid_until) };
    trying(async () => decided(await call(address, body, "PATCH")));
  });
  return made;
}
