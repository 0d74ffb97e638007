// A certified authorization server (oidc-provider) and an MCP server on the official SDK that accepts its JWTs.
// Run in the folder of the packages: `node oauth_servers.mjs`. The variable E2E_OAUTH has its settings as JSON:
//   ttl: the life of access tokens in seconds; secret: of the client `ci-secret`; keys: a folder, in which the private keys of the clients
//   `ci-ES256`, `ci-RS256` and `ci-EdDSA` are written as PEM files.
// Prints `listening on URL`; the MCP server is at /mcp there, and GET /journal has what happened.

import { generateKeyPairSync } from "node:crypto";
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import express from "express";
import { createRemoteJWKSet, jwtVerify } from "jose";
import Provider from "oidc-provider";
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { CallToolRequestSchema, ListToolsRequestSchema } from "@modelcontextprotocol/sdk/types.js";

const settings = JSON.parse(process.env.E2E_OAUTH);
const journal = { refused: 0, calls: 0, tokens: [], clients: [] };

function listen(app) {
  return new Promise((resolve) => {
    const server = createServer(app).listen(0, "127.0.0.1", () => resolve(server.address().port));
  });
}

// The resource is known before the authorization server is configured.
const app = express();
const port = await listen((request, response) => app(request, response));
const resource = `http://127.0.0.1:${port}/mcp`;

const handler = { current: null };
const issuerPort = await listen((request, response) => handler.current(request, response));
const issuer = `http://127.0.0.1:${issuerPort}`;

const kinds = {
  ES256: ["ec", { namedCurve: "P-256" }, "sec1"],
  RS256: ["rsa", { modulusLength: 2048 }, "pkcs1"],
  EdDSA: ["ed25519", {}, "pkcs8"],
};
const keyClients = Object.entries(settings.keys ? kinds : {}).map(([alg, [kind, options, type]]) => {
  const { publicKey, privateKey } = generateKeyPairSync(kind, options);
  writeFileSync(join(settings.keys, `${alg}.pem`), privateKey.export({ type, format: "pem" }));
  return {
    client_id: `ci-${alg}`,
    grant_types: ["client_credentials"],
    response_types: [],
    redirect_uris: [],
    token_endpoint_auth_method: "private_key_jwt",
    token_endpoint_auth_signing_alg: alg,
    jwks: { keys: [{ ...publicKey.export({ format: "jwk" }), use: "sig", alg }] },
    scope: "read write",
  };
});

const provider = new Provider(issuer, {
  enabledJWA: { clientAuthSigningAlgValues: Object.keys(kinds) },
  clients: [
    {
      client_id: "ci-secret",
      client_secret: settings.secret,
      grant_types: ["client_credentials"],
      response_types: [],
      redirect_uris: [],
      token_endpoint_auth_method: "client_secret_basic",
      scope: "read write",
    },
    ...keyClients,
  ],
  scopes: ["openid", "offline_access", "read", "write"],
  clientAuthMethods: ["client_secret_basic", "client_secret_post", "private_key_jwt", "none"],
  pkce: { required: () => true },
  rotateRefreshToken: true,
  ttl: { AccessToken: settings.ttl, ClientCredentials: settings.ttl },
  features: {
    clientCredentials: { enabled: true },
    registration: { enabled: true },
    revocation: { enabled: true },
    devInteractions: { enabled: true },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => resource,
      useGrantedResource: () => true,
      getResourceServerInfo: (_, indicator) => {
        if (indicator !== resource) throw new Error(`unknown resource ${indicator}`);
        return { scope: "read write", audience: resource, accessTokenFormat: "jwt", accessTokenTTL: settings.ttl };
      },
    },
  },
});
provider.on("grant.success", (context) => journal.tokens.push(context.oidc.params.grant_type));
provider.on("registration_create.success", (_, client) => journal.clients.push(client.clientId));
handler.current = provider.callback();

// The protected resource.
const keys = createRemoteJWKSet(new URL(`${issuer}/jwks`));
const metadata = `http://127.0.0.1:${port}/.well-known/oauth-protected-resource/mcp`;
app.get("/.well-known/oauth-protected-resource/mcp", (_, response) =>
  response.json({ resource, authorization_servers: [issuer], scopes_supported: ["read", "write"] }),
);
app.get("/journal", (_, response) => response.json(journal));

function refuse(response, status, error, scope) {
  journal.refused += 1;
  const challenge = `Bearer error="${error}", resource_metadata="${metadata}", scope="${scope}"`;
  response.status(status).set("WWW-Authenticate", challenge).json({ error });
}

app.use("/mcp", express.json(), async (request, response) => {
  const token = request.headers.authorization?.replace(/^Bearer /, "");
  if (!token) return refuse(response, 401, "invalid_token", "read");
  let claims;
  try {
    claims = (await jwtVerify(token, keys, { issuer, audience: resource })).payload;
  } catch {
    return refuse(response, 401, "invalid_token", "read");
  }
  const scopes = (claims.scope ?? "").split(" ");
  const writes = request.body?.method === "tools/call" && request.body.params?.name === "write_note";
  if (writes && !scopes.includes("write")) return refuse(response, 403, "insufficient_scope", "write");
  const server = new Server({ name: "guarded", version: "1" }, { capabilities: { tools: {} } });
  const tool = (name, description) => ({ name, description, inputSchema: { type: "object" } });
  server.setRequestHandler(ListToolsRequestSchema, () => ({
    tools: [
      tool("who_am_i", "Returns the subject of the caller's token."),
      tool("show_token", "Returns the caller's token, which a good server would not."),
      tool("wait", "Waits for a second."),
      tool("write_note", "Needs the scope write."),
    ],
  }));
  server.setRequestHandler(CallToolRequestSchema, async ({ params }) => {
    journal.calls += 1;
    if (params.name === "wait") await new Promise((resolve) => setTimeout(resolve, 1000));
    const text = params.name === "show_token" ? `your token is ${token}` : `${claims.sub ?? claims.client_id}`;
    return { content: [{ type: "text", text }] };
  });
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined });
  response.on("close", () => transport.close());
  await server.connect(transport);
  await transport.handleRequest(request, response, request.body);
});

console.log(`listening on http://127.0.0.1:${port}`);
// Nobody reads standard output after that line.
console.info = console.log = console.error;
