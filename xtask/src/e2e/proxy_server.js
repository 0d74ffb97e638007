// proxy-chain as an HTTP proxy that wants a name and a password. Arguments: its package, the name, the password.
const [, , folder, name, secret] = process.argv;
const { Server } = require(folder);

const server = new Server({
  host: "127.0.0.1",
  port: 0,
  prepareRequestFunction: ({ username, password }) => ({
    requestAuthentication: username !== name || password !== secret,
  }),
});
server.listen(() => console.log(`listening on http://127.0.0.1:${server.port}`));
