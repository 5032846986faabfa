// An MQTT 3.1.1 broker on aedes. It keeps nothing when it ends, and does as the lines of its
// standard input say:
//
//   publish TOPIC PAYLOAD   publishes a message at QoS 1
//   sessions                prints {"sessions"} with the clients whose subscriptions it keeps
//
// Prints {"port"} once it listens, {"subscribed"} with the filter of each subscription, and
// {"topic", "payload"} for each message of a client before it is acknowledged. With a name and a
// password as arguments, it refuses other clients.
'use strict';

const net = require('node:net');
const readline = require('node:readline');
const aedes = require('aedes');

const [port, name, password] = process.argv.slice(2);
const broker = aedes.createBroker();
const kept = new Set();

function print(value) {
  process.stdout.write(`${JSON.stringify(value)}\n`);
}

broker.authenticate = (client, givenName, givenPassword, done) => {
  const isKnown = name === undefined
    || (givenName === name && String(givenPassword) === password);
  const refusal = Object.assign(new Error('unknown'), { returnCode: 4 });
  done(isKnown ? null : refusal, isKnown);
};

broker.authorizePublish = (client, packet, done) => {
  print({ topic: packet.topic, payload: packet.payload.toString() });
  done(null);
};

broker.on('subscribe', (subscriptions, client) => {
  kept.add(client.id);
  print({ subscribed: subscriptions[0].topic });
});

function countSessions() {
  const all = [...kept].map((id) => new Promise((resolve) => {
    broker.persistence.subscriptionsByClient({ id }, (_, found) => resolve((found || []).length));
  }));
  Promise.all(all).then((counts) => {
    print({ sessions: counts.filter((count) => count > 0).length });
  });
}

readline.createInterface({ input: process.stdin }).on('line', (line) => {
  const [command, topic, ...payload] = line.split(' ');
  if (command === 'publish') {
    const message = { topic, payload: payload.join(' '), qos: 1, retain: false };
    broker.publish(message, () => {});
  } else if (command === 'sessions') {
    countSessions();
  }
});

const server = net.createServer(broker.handle);
server.listen(Number(port), '127.0.0.1', () => print({ port: server.address().port }));
