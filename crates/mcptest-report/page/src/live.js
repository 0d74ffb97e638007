// Following a run: the page asks the program that serves it for the report so far.

import { count, duration } from "./dom.js";
import { embedded, readHead, served } from "./data.js";

const PAUSE = 700;

/** Asks for the report until the run has ended. `show` gets each state and the source of records. */
export async function follow(address, place, show) {
  const began = performance.now();
  let version = -1;
  place.hidden = false;
  for (;;) {
    let answer;
    try {
      const response = await fetch(`${address}&since=${version}`, { cache: "no-store" });
      if (!response.ok && response.status !== 204) throw new Error(String(response.status));
      answer = response.status === 204 ? null : await response.json();
    } catch {
      place.textContent = "The program that served this page has ended. `mcptest report --serve` shows the run again.";
      place.className = "live lost";
      return;
    }
    if (answer) {
      version = answer.state.version;
      const { planned_runs: planned, finished_runs: finished, ended } = answer.state;
      if (ended) {
        await finish(address, place, show);
        return;
      }
      place.textContent = `Running: ${count(finished)} of ${count(planned)} runs, ${duration(performance.now() - began)}`;
      place.className = "live";
      show(readHead(answer.report, true), served(address));
    }
    await new Promise((done) => setTimeout(done, PAUSE));
  }
}

/** Takes the whole report into the page: the program may end after that. */
async function finish(address, place, show) {
  const text = await (await fetch(`${address}&whole=1`, { cache: "no-store" })).text();
  const whole = new DOMParser().parseFromString(text, "text/html");
  show(readHead(JSON.parse(whole.getElementById("head").textContent)), embedded(whole));
  place.textContent = "Finished";
  place.className = "live ended";
}
