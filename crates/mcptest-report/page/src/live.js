// Following a run: the page asks the program that serves it for the report so far.

import { count } from "./dom.js";
import { embedded, readHead, served } from "./data.js";

const PAUSE = 700;

/** Asks for the report until the run has ended. `show` gets each state and the source of records. */
export async function follow(address, place, show) {
  let version = -1;
  place.hidden = false;
  try {
    for (;;) {
      const answer = await get(`${address}&since=${version}`);
      if (answer.status !== 204) {
        const { state, report } = await answer.json();
        if (state.ended) break;
        version = state.version;
        place.textContent = `Running: ${count(state.finished_runs)} of ${count(state.planned_runs)} runs`;
        show(readHead(report, true), served(address));
      }
      await new Promise((done) => setTimeout(done, PAUSE));
    }
    // The whole report comes into the page: the program may end after that.
    const text = await (await get(`${address}&whole=1`)).text();
    const whole = new DOMParser().parseFromString(text, "text/html");
    show(readHead(JSON.parse(whole.getElementById("head").textContent)), embedded(whole));
    place.textContent = "Finished";
    place.className = "live ended";
  } catch {
    place.textContent = "The program that served this page has ended; `mcptest report --serve` shows the run again";
    place.className = "live lost";
  }
}

async function get(address) {
  const answer = await fetch(address, { cache: "no-store" });
  if (!answer.ok) throw new Error(String(answer.status));
  return answer;
}
