import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { connectIn } from '../host-process/foreign-files.ts';
import { QmpClient, QmpError, type QmpEvent } from './qmp.ts';

const GREETING = '{"QMP": {"version": {}, "capabilities": []}}\n';
let folder: string;
let server: Server;
/** The reaction of the other side to a line; set by each test. */
let reply: (socket: Socket, line: { execute: string; id: number }) => void;
let greeting = GREETING;

before(async () => {
  // Longer than the maximum path of a socket.
  folder = join(mkdtempSync(join(tmpdir(), 'cloudlet-qmp-')), 'x'.repeat(100));
  const { mkdirSync } = await import('node:fs');
  mkdirSync(folder);
  server = createServer((socket) => {
    socket.on('error', () => {});
    socket.write(greeting);
    socket.on('data', (chunk) => {
      for (const line of chunk.toString().trim().split('\n')) reply(socket, JSON.parse(line));
    });
  });
  const cwd = process.cwd();
  process.chdir(folder);
  await new Promise<void>((resolve) => server.listen('qmp.sock', resolve));
  process.chdir(cwd);
});
after(() => {
  server.close();
  rmSync(join(folder, '..'), { recursive: true, force: true });
});

const answer = (socket: Socket, id: number, value: string) =>
  socket.write(`{"return": ${value}, "id": ${id}}\n`);
const open = async (options = {}) => QmpClient.open(await connectIn(folder, 'qmp.sock'), options);
const failure = (kind: string) => (error: unknown) => error instanceof QmpError && error.failure === kind;

/** Answers the capabilities, and everything else with `others`. */
function behave(others: typeof reply): void {
  reply = (socket, line) => {
    if (line.execute === 'qmp_capabilities') answer(socket, line.id, '{}');
    else others(socket, line);
  };
}

test('answers find their commands in any order, and what QEMU does not know is null', async () => {
  const held: (() => void)[] = [];
  behave((socket, { execute, id }) => {
    held.unshift(() => answer(socket, id, `{"of": "${execute}", "big": 18446744073709551615, "small": 5}`));
    if (held.length === 2) for (const send of held) send();
  });
  const client = await open();
  const [a, b] = await Promise.all([client.command('a'), client.command('b')]);
  assert.deepEqual(a, { of: 'a', big: null, small: 5 });
  assert.deepEqual(b, { of: 'b', big: null, small: 5 });
  client.close();
});

test('garbage, answers nobody waits for and lines in pieces are survived; events come through', async () => {
  const events: QmpEvent[] = [];
  behave((socket, { id }) => {
    socket.write('\0\xff not json\n[]\nnull\n{"return": {}, "id": 999}\n{"event": 5}\n');
    socket.write('{"event": "SHUTDOWN", "da');
    setTimeout(() => {
      socket.write('ta": {"reason": "guest-shutdown"}}\n');
      answer(socket, id, '"good"');
    }, 20);
  });
  const client = await open({ onEvent: (event: QmpEvent) => events.push(event) });
  assert.equal(await client.command('x'), 'good');
  assert.deepEqual(events, [{ name: 'SHUTDOWN', data: { reason: 'guest-shutdown' } }]);
  client.close();
});

test('a refusal, silence and a closed socket are distinguished', async () => {
  behave((socket, { execute, id }) => {
    if (execute === 'bad') socket.write(`{"error": {"class": "GenericError", "desc": "no"}, "id": ${id}}\n`);
    if (execute === 'late') setTimeout(() => answer(socket, id, '1'), 60);
    if (execute === 'next') setTimeout(() => answer(socket, id, '2'), 60);
    if (execute === 'die') socket.destroy();
  });
  const client = await open();
  await assert.rejects(client.command('bad'), /^QmpError: no$/);
  await assert.rejects(client.command('late', {}, 10), failure('timeout'));
  assert.equal(await client.command('next'), 2, 'the late answer is not taken for another');
  const closed = new Promise<void>((resolve) => client.onClose(resolve));
  const waiting = assert.rejects(client.command('silent'), failure('closed'));
  await assert.rejects(client.command('die'), failure('closed'));
  await Promise.all([waiting, closed]);
  await assert.rejects(client.command('x'), failure('closed'));
  assert.ok(client.isClosed);
});

test('no greeting, or a line without end, ends the connection', async () => {
  greeting = '';
  await assert.rejects(open({ timeoutMs: 30 }), failure('timeout'));
  greeting = GREETING;
  behave((socket) => socket.write('x'.repeat(5 * 1024 * 1024)));
  const client = await open();
  await assert.rejects(client.command('x'), failure('closed'));
});
