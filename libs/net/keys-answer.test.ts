import assert from 'node:assert/strict';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { KeysAnswer } from './keys-answer.ts';

const ask = (...pieces: string[]) => {
  const answer = new KeysAnswer(async () => ['ssh-ed25519 AAAA', 'ssh-rsa BBBB']);
  for (const piece of pieces) answer.write(piece);
  return text(answer);
};

test('a request in pieces is answered with a line for each key, marked', async () => {
  const said = await ask('GET /ssh', '-keys HTTP/1.1\r\nHost: x\r', '\n\r', '\n');
  const body = 'ssh-ed25519 AAAA cloudlet-lent\nssh-rsa BBBB cloudlet-lent\n';
  const head = `HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\nContent-Length: ${body.length}`;
  assert.equal(said, `${head}\r\n\r\n${body}`);
});

test('everything else gets nothing, and a request that does not end is not kept', async () => {
  assert.match(await ask('GET / HTTP/1.0\r\n\r\n'), /^HTTP\/1.0 404 .*Length: 0\r\n\r\n$/s);
  const endless = new KeysAnswer(() => assert.fail());
  for (let i = 0; i < 5; i++) endless.write('x'.repeat(1000));
  assert.ok(endless.destroyed);
});
