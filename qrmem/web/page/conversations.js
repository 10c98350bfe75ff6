// Conversations: by user and session, with what was noted and what holds.

import { allowed, part } from "./call.js";
import { about, chip, code, count, day, empty, folded, link, long, make, paged, quiet, when } from "./dom.js";
import { factBox } from "./facts.js";

const SOME = 50;
const TURNS = 15;
const named = (session) => session || "without a name";
const ofUser = (user) => `u:${user}`;
const place = (one) => ["conversations", ofUser(one.user), `s:${one.session}`];

export function sessionRow(one) {
  const days = [...new Set([day(one.first), day(one.last)])].filter(Boolean).join(" – ");
  return make("div", {}, link(named(one.session), ...place(one)), " ",
    quiet([count(one.turns, "turn"), one.speakers.join(", "), days].filter(Boolean).join(" · ")));
}

export async function conversations() {
  const rows = await part("/sessions", 0, 1000);
  const title = make("h2", {}, "Conversations");
  if (!rows.length) return [title, empty("There are no conversations yet. Keep one: ", code("qrmem chat add trip.jsonl"))];
  const users = new Map();
  for (const one of rows) users.set(one.user, [...(users.get(one.user) ?? []), one]);
  return [title, about(count(rows.total, "session"), count(users.size, "user")),
    ...[...users].map(([user, own]) => make("section", {},
      make("h3", {}, user ? link(user, "conversations", ofUser(user)) : "No user named"), folded(own, sessionRow, "", "session")))];
}

export async function conversation(whose, which) {
  const user = whose.replace(/^u:/, "");
  const crumbs = make("p", { class: "crumbs" }, link("Conversations", "conversations"),
    which && user ? [" / ", link(user, "conversations", ofUser(user))] : null);
  return which === undefined ? [crumbs, ...await ofOne(user)] : [crumbs, ...await session(user, which.replace(/^s:/, ""))];
}

async function ofOne(user) {
  const rows = (await part("/sessions", 0, 1000)).filter((one) => one.user === user);
  return [make("h2", {}, user || "No user named"), about(count(rows.length, "session")),
    make("div", { class: "columns" },
      make("section", {}, make("h3", {}, "Sessions"), folded(rows, sessionRow, "none", "session")),
      factsOf(user))];
}

async function session(user, name) {
  const address = `/conversation?session=${encodeURIComponent(name)}&user=${encodeURIComponent(user)}`;
  let date = "";
  const render = (turn) => {
    const isNewDay = day(turn.at) !== date;
    date = day(turn.at);
    return turnBox(turn, isNewDay);
  };
  const load = async (from) => {
    const rows = await part(address, from, TURNS);
    return Object.assign(rows.map(render), { total: rows.total });
  };
  const turns = await load(0);
  return [make("h2", {}, named(name)), about(user, count(turns.total, "turn")),
    make("div", { class: "columns talk" },
      make("section", {}, make("h3", {}, "What was said"),
        turns.length ? long(make("div", { class: "turns" }), turns, turns.total, load, "turn") : quiet("Nothing.")),
      factsOf(user))];
}

function turnBox(turn, isNewDay) {
  const time = turn.at ? new Date(turn.at) : null;
  const clock = time && !Number.isNaN(time.getTime()) ? time.toLocaleTimeString(undefined, { timeStyle: "short" }) : "";
  return make("div", { class: turn.role === "user" ? "turn own" : "turn" },
    isNewDay && turn.at ? make("p", { class: "day" }, day(turn.at)) : null,
    make("div", { class: "bubble" },
      make("div", { class: "small" }, make("strong", {}, turn.speaker || turn.role), " ", quiet(clock), " ",
        link(`turn ${turn.number}`, "documents", turn.id)),
      make("div", { class: "running" }, turn.text),
      turn.facts.map((text) => make("p", { class: "small" }, chip("noted"), " ", text))));
}

// A user's facts come when they are there: they are gathered from all that the user said.
function factsOf(user) {
  const holder = make("section", {}, make("h3", {}, user ? `Facts about what ${user} said` : "Facts"));
  if (!user) {
    holder.append(quiet("Facts are listed by user, and these turns have none."));
    return holder;
  }
  const waiting = quiet("gathering …");
  holder.append(waiting);
  allowed().then(({ write }) => paged(`/facts?user=${encodeURIComponent(user)}&superseded=true`, (fact) => factBox(fact, write), "fact", SOME))
    .then(([total, shown]) => waiting.replaceWith(total ? shown() : quiet("No fact was found.")),
      (error) => waiting.replaceWith(make("p", { class: "error", role: "alert" }, error.message)));
  return holder;
}
