// Asks the server for a part of the memory.

async function answer(path, body, signal, method = body === undefined ? "GET" : "POST") {
  const headers = { authorization: `Bearer ${sessionStorage.getItem("token") ?? ""}` };
  const options = { headers, signal, method };
  if (body !== undefined) {
    headers["content-type"] = "application/json";
    options.body = JSON.stringify(body);
  }
  const given = await fetch(path, options);
  if (given.status === 401) throw new Error("This address is no longer valid: open the one that `qrmem view` printed last.");
  if (given.ok) return given;
  const { error, near } = await given.json().catch(() => ({ error: `The server failed (${given.status}): its terminal says why.` }));
  throw Object.assign(new Error(error), { near: near ?? [] });
}

export async function call(path, body, method) {
  const given = await answer(path, body, undefined, method);
  const value = await given.json();
  const warning = given.headers.get("x-warning");
  if (warning && Array.isArray(value)) value.warning = decodeURIComponent(warning);
  return Array.isArray(value) && given.headers.has("x-total-count")
    ? Object.assign(value, { total: Number(given.headers.get("x-total-count")) }) : value;
}

// A part of a list that the server cuts: `[rows, total]`.
export const part = (path, offset, limit) => call(`${path}${path.includes("?") ? "&" : "?"}offset=${offset}&limit=${limit}`);

// What the command that started the page allows: `{ask, write, strategies}`.
let known;
export const allowed = () => (known ??= call("/allowed"));

// Yields what the server tells while it works: `{kind, data}`.
export async function* events(path, body, signal) {
  const given = await answer(path, body, signal);
  const reader = given.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const whole = (rest + value).split("\n\n");
    rest = whole.pop();
    for (const event of whole) {
      const [, kind, data] = event.match(/^event: (.*)\ndata: (.*)$/);
      yield { kind, data: JSON.parse(data) };
    }
  }
}
