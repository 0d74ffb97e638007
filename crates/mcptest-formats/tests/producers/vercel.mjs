// Makes the fixture of the Vercel AI SDK, offline.
//
//     npm install ai zod @opentelemetry/sdk-trace-node @opentelemetry/otlp-transformer
//     node vercel.mjs FIXTURES
//
// The SDK's own mock model answers; its OpenTelemetry spans are written as OTLP JSON.

import { mkdirSync, writeFileSync } from "node:fs";
import { generateText, stepCountIs, tool } from "ai";
import { MockLanguageModelV3 } from "ai/test";
import {
  InMemorySpanExporter, NodeTracerProvider, SimpleSpanProcessor,
} from "@opentelemetry/sdk-trace-node";
import { JsonTraceSerializer } from "@opentelemetry/otlp-transformer";
import { z } from "zod";

const exporter = new InMemorySpanExporter();
const provider = new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
provider.register();

const usage = (input, cached) => ({
  inputTokens: { total: input, noCache: input - cached, cacheRead: cached, cacheWrite: 0 },
  outputTokens: { total: 20, text: 12, reasoning: 8 },
});
const call = (toolCallId, toolName) => ({
  type: "tool-call", toolCallId, toolName, input: '{"city":"Rome"}',
});
const answers = [
  {
    content: [call("call_w", "get_weather"), call("call_t", "get_time")],
    finishReason: { unified: "tool-calls", raw: "tool_calls" },
    usage: usage(100, 0), warnings: [],
    response: { id: "r1", modelId: "mock-model-1", timestamp: new Date(0) },
  },
  {
    content: [{ type: "text", text: "It is sunny in Rome. The clock is not available." }],
    finishReason: { unified: "stop", raw: "stop" },
    usage: usage(200, 64), warnings: [],
    response: { id: "r2", modelId: "mock-model-1", timestamp: new Date(0) },
  },
];
const model = new MockLanguageModelV3({
  modelId: "mock-model", doGenerate: async () => answers.shift(),
});
const city = z.object({ city: z.string() });
await generateText({
  model,
  prompt: "What are the weather and the time in Rome?",
  stopWhen: stepCountIs(5),
  tools: {
    get_weather: tool({
      description: "Weather of a city", inputSchema: city,
      execute: async ({ city }) => ({ city, sky: "sunny" }),
    }),
    get_time: tool({
      description: "Local time of a city", inputSchema: city,
      execute: async () => { throw new Error("no clock for Rome"); },
    }),
  },
  experimental_telemetry: { isEnabled: true, functionId: "weather" },
});
const spans = exporter.getFinishedSpans();
// Stack traces have paths of the machine.
for (const span of spans) {
  for (const event of span.events) delete event.attributes["exception.stacktrace"];
}
const bytes = JsonTraceSerializer.serializeRequest(spans);
const folder = `${process.argv[2]}/vercel`;
mkdirSync(folder, { recursive: true });
writeFileSync(`${folder}/otlp.json`, `${new TextDecoder().decode(bytes)}\n`);
console.log("wrote vercel/otlp.json");
