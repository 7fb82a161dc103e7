import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { promises as dns } from 'node:dns';
import { once } from 'node:events';
import { after, test } from 'node:test';
import { HostNames } from './host-names.ts';

/** A name server that answers for ok.test and does not answer for other names. */
const server = createSocket('udp4', (question, from) => {
  if (!question.includes('\x02ok\x04test')) return;
  const end = question.indexOf(0, 12) + 5;
  const isV4 = question.readUInt16BE(end - 4) === 1;
  const head = Buffer.from(question.subarray(0, end));
  head.writeUInt16BE(0x8180, 2);
  head.writeUInt16BE(isV4 ? 1 : 0, 6);
  head.writeUInt32BE(0, 8);
  const record = Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 1, 0, 4, 9, 9, 9, 9]);
  server.send(isV4 ? Buffer.concat([head, record]) : head, from.port, from.address);
});
server.bind(0, '127.0.0.1');
await once(server, 'listening');
after(() => server.close());
const names = new HostNames([`127.0.0.1:${server.address().port}`]);

test('names whose server is silent hold up no other name, and no thread', async () => {
  let given = 0;
  const silent = Array.from({ length: 60 }, (_, at) =>
    names.find(`n${at}.hang.test`).catch(() => {
      given++;
    }),
  );
  assert.deepEqual(await names.find('ok.test'), [{ address: '9.9.9.9', family: 4 }]);
  // In the threads of the process, as for its other names.
  await dns.lookup('localhost');
  await names.find('localhost');
  assert.equal(given, 0, 'a silent name was waited for');
  await Promise.all(silent);
});

test('names of the host are found', async () => {
  assert.ok((await names.find('localhost')).some(({ address }) => ['127.0.0.1', '::1'].includes(address)));
});
