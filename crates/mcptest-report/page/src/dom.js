// Making elements. Text is only ever set as text: nothing here parses HTML.

/** Makes an element with attributes and children. Strings become text nodes. */
export function el(name, attributes, ...children) {
  const element = document.createElement(name);
  fill(element, attributes, children);
  return element;
}

/** Makes an SVG element. */
export function svg(name, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  fill(element, attributes, children);
  return element;
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  append(element, children);
}

function append(element, children) {
  for (const child of children) {
    if (child === undefined || child === null || child === false) continue;
    if (Array.isArray(child)) append(element, child);
    else element.append(child);
  }
}

/** Characters that change how other text looks: controls, and marks of writing direction. */
const INVISIBLE =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

/** Replaces characters that cannot be seen by their numbers. */
export function visible(text) {
  return text.replace(INVISIBLE, (found) => `\\u{${found.charCodeAt(0).toString(16)}}`);
}

/** The longest text that is shown at once, in characters. */
const SHORT = 4000;

/** A text of a server or a model in its own element; a long one is cut until it is asked for. */
export function foreign(name, attributes, text) {
  const element = el(name, { dir: "auto", ...attributes });
  if (text.length <= SHORT) {
    element.textContent = visible(text);
    return element;
  }
  let shown = SHORT;
  const piece = document.createTextNode(visible(text.slice(0, shown)));
  const more = el("button", { type: "button", class: "more" });
  const label = () => {
    more.textContent = `Show more (${count(text.length - shown)} characters left)`;
  };
  more.addEventListener("click", () => {
    // Ten times as much with each step, so that a long text needs few of them.
    const next = Math.min(text.length, shown * 10);
    piece.data += visible(text.slice(shown, next));
    shown = next;
    if (shown === text.length) more.remove();
    else label();
  });
  label();
  element.append(piece, "… ", more);
  return element;
}

/** A part that is made when it is opened. */
export function lazy(title, make) {
  const box = el("details", { class: "lazy" }, el("summary", {}, title));
  box.addEventListener("toggle", () => box.open && box.children.length === 1 && box.append(make()));
  return box;
}

/** A number with thousands separators. */
export function count(number) {
  return Math.round(number).toLocaleString("en-US");
}

/** `1 run`, `2 runs`. */
export function counted(number, noun) {
  return `${count(number)} ${noun}${number === 1 ? "" : "s"}`;
}

/** A duration for people. */
export function duration(ms) {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const seconds = ms / 1000;
  if (seconds < 60) return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${Math.round(seconds % 60)} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** A label in at most `room` characters: its middle is left out, because names of tests often differ
 * only in their ends, such as the model. */
export function clip(label, room) {
  const letters = [...label];
  if (letters.length <= room) return label;
  const end = Math.floor((room - 1) * 0.45);
  return `${letters.slice(0, room - 1 - end).join("")}…${end > 0 ? letters.slice(-end).join("") : ""}`;
}

/** A number of tokens in few characters. */
export function compact(number) {
  if (number < 10_000) return count(number);
  const short = (value, digits) => value.toFixed(digits).replace(/\.0$/, "");
  if (number < 1_000_000) return `${short(number / 1000, number < 100_000 ? 1 : 0)}k`;
  return `${short(number / 1_000_000, 1)}M`;
}

/** Dollars: whole cents, or the first digits of less. */
export function dollars(usd) {
  if (usd === 0) return "$0";
  if (usd >= 0.095) return `$${usd.toFixed(2)}`;
  return `$${Number(usd.toPrecision(2))}`;
}

/** A number without the noise of binary fractions. */
export function figure(number) {
  return Number.isInteger(number) ? count(number) : String(Number(number.toFixed(3)));
}

/** Scrolls to an element and gives it the focus. */
export function moveTo(element) {
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  element.scrollIntoView({ block: "start", behavior: still ? "auto" : "smooth" });
  if (element.tabIndex < 0 && !element.hasAttribute("tabindex")) element.setAttribute("tabindex", "-1");
  element.focus({ preventScroll: true });
}

/** Copies a text, and says so. */
export async function copy(text, said) {
  try {
    await navigator.clipboard.writeText(text);
    toast(said);
  } catch {
    // Without the permission, the browser's own command still works on a selection.
    const area = el("textarea", { class: "offscreen", "aria-hidden": "true", tabindex: "-1" });
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    toast(done ? said : "The browser does not allow copying");
  }
}

let toastTimer;

/** Shows a message for a moment. */
export function toast(text) {
  const place = document.getElementById("toast");
  place.textContent = text;
  place.classList.add("shown");
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => place.classList.remove("shown"), 1800);
}
