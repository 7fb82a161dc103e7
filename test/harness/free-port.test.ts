import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { test } from 'node:test';
import { ephemeralPorts, freePorts } from './free-port.ts';

test('ports are free at every address, different, and none for outgoing connections', async () => {
  const ports = await freePorts(50);
  assert.equal(new Set(ports).size, 50);
  const [first = 65_536, last = 65_536] = ephemeralPorts();
  assert.deepEqual(first > 32_700 ? ports.filter((port) => port >= first && port <= last) : [], []);
  for (const [i, port] of ports.entries()) {
    const server = createServer().listen(port, `127.0.0.${1 + i}`);
    await once(server, 'listening');
    server.close();
  }
});
