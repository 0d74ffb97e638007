// An agent under test on the official SDK: `node oauth_agent.mjs PROMPT` calls the tools that the prompt names, one after another, on the
// first server of the file MCP_CONFIG. Run in the folder of the packages.

import { readFileSync } from "node:fs";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

const { mcpServers } = JSON.parse(readFileSync(process.env.MCP_CONFIG, "utf8"));
const [{ command, args, env }] = Object.values(mcpServers);
const client = new Client({ name: "agent", version: "1" });
await client.connect(new StdioClientTransport({ command, args, env }));
await client.listTools();
const answers = [];
for (const name of process.argv[2].split(" ")) {
  const { content } = await client.callTool({ name, arguments: {} });
  answers.push(content[0].text);
}
await client.close();
console.log(JSON.stringify({ final: answers.join(", ") }));
