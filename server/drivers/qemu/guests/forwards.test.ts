import assert from 'node:assert/strict';
import { once } from 'node:events';
import * as fs from 'node:fs';
import { connect, createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import type { GuestSpec } from '../../../compute/hypervisor.ts';
import { isAppError } from '../../../platform/errors.ts';
import { buildQemuFixture, noQemu } from '../../../testing/qemu-fixture.ts';
import type { RunRecord } from './guest-folders.ts';
import { addForwards } from './guest-networks.ts';

const HOST = '127.96.0.1';

/** The port forwarding of QEMU: it can have each port except the given ones. Records the received lines. */
function scriptedQemu(isTaken: (port: number) => boolean) {
  const lines: string[] = [];
  const command = async (_name: string, args: Readonly<Record<string, unknown>> = {}) => {
    const line = String(args['command-line']);
    lines.push(line);
    const port = Number(/:(\d+)-:/.exec(line)?.[1]);
    return isTaken(port) ? `could not set up host forwarding rule '${line}'\r\n` : '';
  };
  return { lines, command };
}

test('each port of a guest gets one of its address, and what others have is passed over', async () => {
  const qemu = scriptedQemu((port) => port === 20_000 || port === 20_002);
  const forwards = await addForwards(qemu, HOST, [22, 80, 8080]);
  assert.deepEqual(forwards, {
    22: { host: HOST, port: 20_003 },
    80: { host: HOST, port: 20_001 },
    8080: { host: HOST, port: 20_004 },
  });
  assert.equal(qemu.lines[0], 'hostfwd_add net0 tcp:127.96.0.1:20000-:22');
});

test('a host that lets QEMU listen nowhere is an error; an address of others is never asked for', async () => {
  const deaf = scriptedQemu(() => true);
  await assert.rejects(addForwards(deaf, HOST, [22]), (error) => isAppError(error, 'engine_unavailable'));
  for (const host of ['', '0.0.0.0', '10.0.0.1', '127.0.0.1,x', '127.0.0.1\n']) {
    const { command, lines } = scriptedQemu(() => false);
    await assert.rejects(addForwards({ command }, host, [22]), JSON.stringify(host));
    assert.deepEqual(lines, []);
  }
});

test('a guest starts beside programs that listen everywhere, and is found again', {
  skip: noQemu,
}, async () => {
  const fixture = buildQemuFixture();
  const made = fixture.newSpec();
  // Ports of a program, and ports that earlier machines would take at first. Well-known ports are not used
  // here: tests that run at the same time listen there.
  const busy = [3999, 20_000, 20_001];
  const ports = [22, 80, 8080, ...busy];
  const spec: GuestSpec = { ...made, network: { ...made.network, ports } };
  const programs: Server[] = [];
  for (const port of busy) programs.push(await everywhere(port));
  // The guest of another test may listen there at its own address, and then no program can.
  const taken = busy.filter((_, i) => programs[i]?.listening);
  const hypervisor = fixture.open();
  await hypervisor.start(spec);
  const endpoints = ports.map((port) => hypervisor.endpoint(spec, port));
  for (const endpoint of endpoints) {
    assert.ok(endpoint !== null && !taken.includes(endpoint.port), JSON.stringify(endpoint));
    const client = connect(endpoint);
    await once(client, 'connect');
    client.destroy();
  }
  await hypervisor.close();
  const path = join(fixture.deps.vmsDirectory, spec.vmId, 'run.json');
  const written = JSON.parse(fs.readFileSync(path, 'utf8')) as RunRecord;
  const second = fixture.open();
  assert.deepEqual(
    ports.map((port) => second.endpoint(spec, port)),
    endpoints,
  );
  // A crash after the forwards were made and before they were recorded.
  fs.writeFileSync(path, JSON.stringify({ ...written, runningSince: null, forwards: {} }));
  await second.start(spec);
  for (const port of ports) assert.notEqual(second.endpoint(spec, port), null);
  await second.stop(spec.vmId, { graceMs: 0 });
  await second.close();
  for (const program of programs) program.close();
  await fixture.remove();
});

/** Listens at all addresses, unless another program of this host has the port. */
async function everywhere(port: number): Promise<Server> {
  const server = createServer();
  await new Promise((resolve) => {
    server.once('error', resolve).listen({ port, host: '0.0.0.0', exclusive: true }, () => resolve(null));
  });
  return server;
}
