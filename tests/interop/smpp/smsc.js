// An SMS centre on node-smpp. It accepts every bind with the password `secret08`, accepts each
// submission and reports it as delivered, and does as the lines of its standard input say:
//
//   deliver COUNT WINDOW SOURCE...  delivers so many messages of these numbers, and those again that
//                                   were refused or not answered; prints {"delivered": COUNT}
//   throttle COUNT                  refuses the next submissions with ESME_RTHROTTLED
//   break                           closes the connection in the middle of what comes
//
// Prints {"port"} once it listens, {"bound"} for each session, and {"accepted"} with the sender and
// the octets of each submission before it is answered.
'use strict';

const readline = require('node:readline');
const smpp = require('smpp');

let session = null;
let throttled = 0;
let accepted = 0;

function print(value) {
  process.stdout.write(`${JSON.stringify(value)}\n`);
}

function textOf(pdu) {
  const { message, udh } = pdu.short_message;
  const part = udh ? ` ${udh.map((element) => element.toString('hex')).join('')}` : '';
  return `${pdu.source_addr}${part} ${message}`;
}

function receipt(pdu, id) {
  // The id is hexadecimal in the response and decimal here.
  return {
    source_addr: pdu.destination_addr,
    destination_addr: pdu.source_addr,
    esm_class: smpp.ESM_CLASS.MC_DELIVERY_RECEIPT,
    short_message: `id:${id} sub:001 dlvrd:001 submit date:2611241200 done date:2611241201 `
      + 'stat:DELIVRD err:000 text:',
    user_message_reference: pdu.user_message_reference,
  };
}

function submitted(of, pdu) {
  if (throttled > 0) {
    throttled -= 1;
    of.send(pdu.response({ command_status: smpp.ESME_RTHROTTLED }));
    return;
  }
  accepted += 1;
  const id = 1000000 + accepted;
  print({ accepted: textOf(pdu) });
  const report = () => {
    if (pdu.registered_delivery === 1) {
      of.deliver_sm(receipt(pdu, id));
    }
  };
  // Every third receipt comes before the response.
  if (accepted % 3 === 0) {
    report();
  }
  of.send(pdu.response({ message_id: id.toString(16).toUpperCase() }));
  if (accepted % 3 !== 0) {
    report();
  }
}

function deliver(count, window, sources) {
  const waiting = Array.from({ length: count }, (_, number) => number);
  let left = count;
  let flying = 0;
  const more = () => {
    while (flying < window && waiting.length > 0) {
      if (session === null) {
        setTimeout(more, 20);
        return;
      }
      const number = waiting.shift();
      const of = session;
      let isAnswered = false;
      flying += 1;
      const again = () => {
        if (!isAnswered) {
          isAnswered = true;
          flying -= 1;
          waiting.unshift(number);
          setTimeout(more, 20);
        }
      };
      of.once('close', again);
      of.deliver_sm({
        source_addr: sources[number % sources.length],
        destination_addr: '1234',
        short_message: `message ${number}`,
      }, (response) => {
        of.removeListener('close', again);
        if (response.command_status !== 0) {
          again();
        } else if (!isAnswered) {
          isAnswered = true;
          flying -= 1;
          left -= 1;
          if (left === 0) {
            print({ delivered: count });
          }
          more();
        }
      });
    }
  };
  more();
}

const server = smpp.createServer((of) => {
  of.setMaxListeners(0);
  of.on('error', () => of.destroy());
  of.on('close', () => {
    if (session === of) {
      session = null;
    }
  });
  of.on('bind_transceiver', (pdu) => {
    if (pdu.password !== 'secret08') {
      of.send(pdu.response({ command_status: smpp.ESME_RINVPASWD }));
      return;
    }
    of.send(pdu.response({ system_id: 'node-smpp' }));
    session = of;
    print({ bound: pdu.system_id });
  });
  of.on('submit_sm', (pdu) => submitted(of, pdu));
  of.on('enquire_link', (pdu) => of.send(pdu.response()));
  of.on('unbind', (pdu) => {
    print({ unbound: true });
    of.send(pdu.response());
    of.close();
  });
});

readline.createInterface({ input: process.stdin }).on('line', (line) => {
  const [command, ...words] = line.split(' ');
  if (command === 'deliver') {
    deliver(Number(words[0]), Number(words[1]), words.slice(2));
  } else if (command === 'throttle') {
    throttled = Number(words[0]);
  } else if (command === 'break') {
    if (session !== null) {
      session.destroy();
    }
  }
}).on('close', () => process.exit(0));

const port = Number(process.argv[2] || 0);
const listening = server.listen(port, '127.0.0.1', () => print({ port: listening.address().port }));
