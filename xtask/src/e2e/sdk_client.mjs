// A session of the official TypeScript SDK with a server: node sdk_client.mjs ERA PLAN.
//
// PLAN is JSON: `server` is an address or a command with its arguments, `calls` are pairs of a tool and its arguments. ERA `legacy` is the first line of the
// SDK, everything else the second line, with that way to open the session. Prints what was negotiated, listed and answered, as JSON.

const [era, plan] = [process.argv[2], JSON.parse(process.argv[3])];
const me = { name: "e2e", version: "1" };

async function open() {
  if (era === "legacy") {
    const { Client } = await import("@modelcontextprotocol/sdk/client/index.js");
    const { StdioClientTransport } = await import("@modelcontextprotocol/sdk/client/stdio.js");
    const { StreamableHTTPClientTransport } = await import("@modelcontextprotocol/sdk/client/streamableHttp.js");
    return { client: new Client(me), StdioClientTransport, StreamableHTTPClientTransport };
  }
  const { Client, StreamableHTTPClientTransport } = await import("@modelcontextprotocol/client");
  const { StdioClientTransport } = await import("@modelcontextprotocol/client/stdio");
  return { client: new Client(me, { versionNegotiation: { mode: era } }), StdioClientTransport, StreamableHTTPClientTransport };
}

const { client, StdioClientTransport, StreamableHTTPClientTransport } = await open();
const [command, ...args] = [plan.server].flat();
const transport =
  typeof plan.server === "string"
    ? new StreamableHTTPClientTransport(new URL(plan.server))
    : new StdioClientTransport({ command, args, stderr: "inherit" });
await client.connect(transport);
const seen = { revision: client.getNegotiatedProtocolVersion?.() ?? transport.protocolVersion ?? null, tools: [], answers: [] };
for (let cursor; ; ) {
  const page = await client.listTools(cursor ? { cursor } : {});
  seen.tools.push(...page.tools);
  cursor = page.nextCursor;
  if (cursor === undefined) break;
}
for (const [name, args] of plan.calls) {
  try {
    const result = await client.callTool({ name, arguments: args });
    const text = result.content.filter((block) => block.type === "text").map((block) => block.text);
    seen.answers.push({ text, isError: result.isError === true });
  } catch (error) {
    seen.answers.push({ error: error.code });
  }
}
await client.close();
console.log(JSON.stringify(seen));
