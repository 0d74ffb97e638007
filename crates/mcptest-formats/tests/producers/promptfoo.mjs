// Makes the fixtures of promptfoo, offline.
//
//     npm install promptfoo
//     node promptfoo.mjs FIXTURES
//
// promptfoo's own providers for OpenAI and Anthropic call a stand-in on the loopback interface; an
// agent provider in this folder's style reports its calls as metadata.

import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { once } from "node:events";
import { tmpdir } from "node:os";

const schema = {
  type: "object", properties: { city: { type: "string" } }, required: ["city"],
};
const chat = {
  id: "chatcmpl-1", object: "chat.completion", created: 1763400000, model: "gpt-4.1-2025-04-14",
  choices: [{
    index: 0, finish_reason: "tool_calls", message: {
      role: "assistant", content: null, tool_calls: [{
        id: "call_w", type: "function",
        function: { name: "get_weather", arguments: '{"city":"Rome"}' },
      }],
    },
  }],
  usage: { prompt_tokens: 100, completion_tokens: 20, total_tokens: 120 },
};
const message = {
  id: "msg_1", type: "message", role: "assistant", model: "claude-sonnet-4-5-20250929",
  content: [
    { type: "text", text: "I will look it up." },
    { type: "tool_use", id: "toolu_w", name: "get_weather", input: { city: "Rome" } },
  ],
  stop_reason: "tool_use", stop_sequence: null,
  usage: { input_tokens: 100, output_tokens: 20 },
};
const server = createServer((request, response) => {
  request.resume().on("end", () => {
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify(request.url.includes("messages") ? message : chat));
  });
});
server.listen(0, "127.0.0.1");
await once(server, "listening");
const base = `http://127.0.0.1:${server.address().port}`;

const folder = mkdtempSync(`${tmpdir()}/promptfoo-`);
writeFileSync(`${folder}/agent.mjs`, `
export default class Agent {
  id() { return "agent"; }
  async callApi() {
    return {
      output: "It is sunny in Rome. The clock is not available.",
      tokenUsage: { prompt: 300, completion: 40, total: 340 },
      metadata: { toolCalls: [
        { id: "t1", name: "get_weather", input: { city: "Rome" }, output: "sunny", is_error: false },
        { id: "t2", name: "get_time", input: { city: "Rome" }, output: "no clock", is_error: true },
      ] },
    };
  }
}
`);
writeFileSync(`${folder}/broken.mjs`, `
export default class Broken {
  id() { return "broken"; }
  async callApi() { return { error: "the provider is down" }; }
}
`);
writeFileSync(`${folder}/promptfooconfig.json`, JSON.stringify({
  description: "weather",
  prompts: ["What is the weather in {{city}}?"],
  providers: [
    { id: "openai:chat:gpt-4.1", config: {
      apiBaseUrl: `${base}/v1`, apiKey: "none",
      tools: [{ type: "function", function: { name: "get_weather", parameters: schema } }],
    } },
    { id: "anthropic:messages:claude-sonnet-4-5-20250929", config: {
      apiBaseUrl: base, apiKey: "none", tools: [{ name: "get_weather", input_schema: schema }],
    } },
    "file://agent.mjs",
    "file://broken.mjs",
  ],
  tests: [{ description: "weather of Rome", vars: { city: "Rome" } }],
}));
const promptfoo = spawn("npx", [
  "promptfoo", "eval", "-c", `${folder}/promptfooconfig.json`, "--no-cache", "--no-progress-bar",
  "--no-table", "-o", `${folder}/results.json`, "-o", `${folder}/results.jsonl`,
], {
  stdio: "inherit",
  env: {
    ...process.env, PROMPTFOO_CONFIG_DIR: folder, PROMPTFOO_DISABLE_TELEMETRY: "1",
    PROMPTFOO_DISABLE_UPDATE: "1", PROMPTFOO_DISABLE_REMOTE_GENERATION: "1",
  },
});
await once(promptfoo, "exit");
server.close();
mkdirSync(`${process.argv[2]}/promptfoo`, { recursive: true });
for (const name of ["results.json", "results.jsonl"]) {
  // Paths of the machine are left out.
  const text = readFileSync(`${folder}/${name}`, "utf8").replaceAll(folder, "folder");
  writeFileSync(`${process.argv[2]}/promptfoo/${name}`, text);
  console.log(`wrote promptfoo/${name}`);
}
