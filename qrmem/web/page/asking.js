// Search, and questions with their answers while they come.

import { allowed, call, events } from "./call.js";
import { about, chip, code, count, empty, entityLink, folded, link, make, marked, path, quiet, segmentLink } from "./dom.js";
import { plot } from "./graph.js";
import { body, shownOf, stepBox } from "./trails.js";

const HITS = 50;
const NAME_WORDS = 4;
// --- search -----------------------------------------------------------------------------------

export async function search(query = "") {
  document.getElementById("words").value = query;
  const title = make("h2", {}, query ? `“${query}”` : "Search");
  if (!query) return [title, empty("Type words, a name or a question in the box above.")];
  const hits = await call("/search", { query, k: HITS });
  const segments = await call("/segments", { ids: hits.map((hit) => hit.segment_id) });
  const at = new Map(segments.map((segment) => [segment.id, segment]));
  const named = make("div");
  if (query.split(/\s+/).length <= NAME_WORDS) tellEntity(query, named);
  const amount = hits.length ? `${count(hits.length, "segment")}${hits.length === HITS ? " at most" : ""}, the best first` : "nothing found";
  return [title, about(amount, "no chat model was called"), named,
    hits.warning ? make("p", { class: "notice" }, make("span", {}, hits.warning)) : null,
    folded(hits, (hit) => hitBox(hit, at.get(hit.segment_id), query), "No segment was found.", "segment", 10)];
}

// The entity of this name, or those that are called much alike; the hits do not wait for it.
function tellEntity(query, holder) {
  call(`/around/${encodeURIComponent(query)}?limit=1`).then(
    (one) => holder.replaceChildren(make("p", { class: "notice" }, make("span", {}, "Entity: ", entityLink(one.key, one.name), " ",
      quiet([one.type.toLowerCase(), count(one.totals.segments, "segment"), count(one.totals.relations, "relation")].filter(Boolean).join(" · "))))),
    (error) => error.near?.length && holder.replaceChildren(make("p", {}, "Names near it: ",
      error.near.flatMap((name, at) => [at ? ", " : "", link(name, "entities", name)]))));
}

function hitBox(hit, segment, query) {
  const place = [hit.part, `score ${hit.score.toFixed(3)}`, hit.boilerplate].filter(Boolean).join(" · ");
  const isCut = hit.excerpt && hit.excerpt.length < hit.text.length;
  return make("div", {},
    make("div", { class: "small" }, segment ? segmentLink(segment, query, hit.title) : hit.document_id, " ", quiet(place)),
    make("blockquote", {}, marked(hit.excerpt || hit.text, hit.matches, isCut)),
    make("details", { class: "small" }, make("summary", {}, isCut ? "The whole segment, and how it was found" : "How it was found"),
      hit.via ? make("p", {}, hit.via) : null, isCut ? make("blockquote", {}, marked(hit.text)) : null));
}

// --- questions --------------------------------------------------------------------------------

// A question that a person sent: an address alone asks nothing, for asking may cost money.
let sent = null;

export function askNow(question, options = {}) {
  sent = { question, ...options };
  const to = path("ask", question);
  if (location.hash === to) window.dispatchEvent(new Event("show-again"));
  else location.hash = to;
}

const isOff = () => make("p", { class: "notice" }, make("span", {}, "Questions are off, because they may call the chat model. Search is free. ",
  "To ask here, start the page with ", code("qrmem view --ask"), "."));

export async function askBox(question = "") {
  const may = await allowed();
  if (!may.ask) return isOff();
  const area = make("textarea", { id: "question", name: "question", rows: "2", placeholder: "What do you want to know?" });
  area.value = question;
  const strategy = make("select", { id: "strategy", name: "strategy" }, 
    new Option("automatic", ""), may.strategies.map((name) => make("option", {}, name)));
  const then = make("input", { id: "as-of", name: "as-of", placeholder: "2026-05", size: "10", autocomplete: "off" });
  const form = make("form", { class: "ask" }, make("label", { for: "question" }, "Question"), area,
    make("div", { class: "choices" }, make("button", { class: "strong" }, "Ask"),
      make("details", {}, make("summary", {}, "Options"),
        make("p", {}, make("label", { for: "strategy" }, "Strategy"), " ", strategy),
        make("p", {}, make("label", { for: "as-of" }, "As of (a date)"), " ", then))));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const asked = area.value.trim();
    if (asked) askNow(asked, { strategy: strategy.value || null, as_of: then.value.trim() });
    else area.focus();
  });
  area.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    form.requestSubmit();
  });
  return form;
}

export async function ask(question = "") {
  const asked = sent?.question === question ? sent : null;
  sent = null;
  const title = make("h2", { class: "asked" }, question || "Ask");
  const may = await allowed();
  if (!may.ask) return [title, isOff()];
  const box = await askBox(question);
  if (!question) return [title, box];
  if (!asked) return [title, box, quiet("Press Ask to send it.")];
  return [title, answering(asked), make("h3", {}, "Ask something else"), box];
}

// What has come so far; it ends with the answer, or with what went wrong.
function answering(asked) {
  const stopping = new AbortController();
  const stop = make("button", { type: "button" }, "Stop");
  stop.addEventListener("click", () => stopping.abort());
  const state = make("span", { role: "status" }, "searching …");
  const head = make("p", { class: "notice" }, state, stop);
  const words = make("div");
  const steps = make("ol", { class: "steps" });
  const trail = make("div", {}, make("h3", {}, "What is read, and why the run continues"), steps);
  const box = make("div", { class: "answering" }, head, words, trail);
  const left = () => stopping.abort(); // who leaves the page pays for nothing more
  window.addEventListener("hashchange", left, { once: true });
  const fail = (said) => {
    head.replaceChildren(make("span", { role: "alert" }, said));
    if (!steps.childElementCount) trail.remove();
  };
  run({ asked, signal: stopping.signal, state, words, steps })
    .then(async (answer) => {
      if (!answer) return fail("The connection ended before there was an answer.");
      const shown = await shownOf(answer.trail);
      box.replaceChildren(...[answer.reason && answer.status === "unanswerable" ? make("p", {}, answer.reason) : null, ...body(shown)].filter(Boolean));
      plot(box);
      document.getElementById("said").textContent = `The answer is ready: ${answer.status}`;
    })
    .catch((error) => fail(error.name === "AbortError" ? "Stopped. Paid replies are kept: the same question continues from there." : error.message))
    .finally(() => window.removeEventListener("hashchange", left));
  return box;
}

async function run({ asked, signal, state, words, steps }) {
  const texts = new Map();
  let before = null;
  let written = {};
  const tell = (said) => { if (state.textContent !== said) state.textContent = said; };
  for await (const { kind, data } of events("/ask", { ...asked, stream: true }, signal)) {
    if (kind === "error") throw new Error(data.error);
    if (kind === "answer") return data;
    if (kind === "words") {
      written = data.field ? written : {};
      written[data.field] = (written[data.field] ?? "") + data.text;
      tell(data.field === "answer" ? "writing the answer …" : "reading …");
      words.replaceChildren(...shownWords(written));
      continue;
    }
    const ids = [...data.read, ...data.dropped].map((one) => one.segment_id).filter((id) => !texts.has(id)).slice(0, 1000);
    if (ids.length) for (const segment of await call("/segments", { ids })) texts.set(segment.id, segment);
    tell(`step ${data.n}: ${data.action}${data.verdict ? `, ${data.verdict}` : ""}`);
    steps.append(make("li", {}, stepBox(data, texts, before)));
    before = data;
  }
  return null;
}

const shownWords = ({ reasoning = "", answer = "" }) => [
  reasoning ? make("p", { class: "quiet" }, reasoning) : "",
  answer ? make("blockquote", { class: "answer" }, answer) : ""].filter(Boolean);
