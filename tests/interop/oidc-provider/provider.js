// An OpenID provider on oidc-provider. It knows one client, whose id and secret are its arguments,
// and some people, who all have the same password.
//
// Prints {"port"} once it listens, which is a part of its issuer, and is ready once a line of its
// standard input says the redirect URI.
'use strict';

const http = require('node:http');
const readline = require('node:readline');
const { default: Provider } = require('oidc-provider');

const [clientId, clientSecret] = process.argv.slice(2);
const password = 'open-sesame';
const people = {
  rita: { name: 'Rita Reader', groups: ['everybody', 'readers'] },
  otto: { name: 'Otto Operator', groups: ['operators'] },
  guest: { name: 'Gustav Guest', groups: ['everybody'] },
};

function provider(issuer, redirectUri) {
  return new Provider(issuer, {
    clients: [{ client_id: clientId, client_secret: clientSecret, redirect_uris: [redirectUri] }],
    claims: { openid: ['sub'], profile: ['name', 'groups'], email: [] },
    // The service reads the ID token alone.
    conformIdTokenClaims: false,
    cookies: { keys: ['a key of the test'] },
    features: { devInteractions: { enabled: false } },
    interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
    findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id, ...people[id] }) }),
    // Nobody is asked for consent.
    async loadExistingGrant({ oidc }) {
      const { clientId } = oidc.client;
      const grant = new oidc.provider.Grant({ clientId, accountId: oidc.session.accountId });
      grant.addOIDCScope('openid profile email');
      await grant.save();
      return grant;
    },
  });
}

function showLogin(response, problem) {
  response.setHeader('content-type', 'text/html; charset=utf-8');
  response.end(`<!doctype html><html lang="en"><title>Log in</title><link rel="icon" href="data:,">
    <h1>Log in</h1><p>${problem}</p><form method="post">
    <label>Name <input name="name"></label>
    <label>Password <input name="password" type="password"></label>
    <button>Log in</button></form>`);
}

async function logIn(oidc, request, response) {
  let form = '';
  for await (const part of request) form += part;
  const given = new URLSearchParams(form);
  const accountId = given.get('name');
  if (people[accountId] === undefined || given.get('password') !== password) {
    showLogin(response, 'The name or the password is wrong.');
    return;
  }
  await oidc.interactionFinished(request, response, { login: { accountId } });
}

const server = http.createServer();
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address();
  process.stdout.write(`${JSON.stringify({ port })}\n`);
  readline.createInterface({ input: process.stdin }).once('line', (redirectUri) => {
    const oidc = provider(`http://localhost:${port}`, redirectUri);
    const serve = oidc.callback();
    server.on('request', (request, response) => {
      if (!request.url.startsWith('/interaction/')) serve(request, response);
      else if (request.method === 'POST') logIn(oidc, request, response);
      else showLogin(response, '');
    });
    process.stdout.write(`${JSON.stringify({ ready: true })}\n`);
  });
});
