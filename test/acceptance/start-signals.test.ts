/** The process that started Cloudlet can end it: through npm, with Ctrl+C, by closing the terminal. */
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { CloudProcess } from '../harness/cloud-process.ts';
import { openSocket, readToEnd } from '../harness/raw-http.ts';
import { inTerminal, cannotOpenTerminal as skip } from '../harness/terminal.ts';
import { eventually } from '../harness/waiting.ts';

const home = mkdtempSync(join(tmpdir(), 'cloudlet-npm-'));
after(() => rmSync(home, { recursive: true, force: true }));

const NPM_START = ['npm', 'start'];

async function withCloud(command: readonly string[], work: (cloud: CloudProcess) => Promise<void>) {
  const cloud = await CloudProcess.start({ command, env: { HOME: home } });
  try {
    await work(cloud);
  } finally {
    for (const pid of serversOf(cloud)) process.kill(pid, 'SIGKILL');
    await cloud.stop();
  }
}

function answers(cloud: CloudProcess): Promise<boolean> {
  return fetch(`${cloud.api}/healthz`, { headers: { connection: 'close' } }).then(
    () => true,
    () => false,
  );
}

/** No process of the server is left, and it stopped in order: only then does SQLite remove its log. */
async function endsInOrder(cloud: CloudProcess): Promise<void> {
  await eventually('the server ends', () => serversOf(cloud).length === 0);
  assert.equal(await answers(cloud), false);
  assert.equal(existsSync(join(cloud.dataDir, 'metadata.db-wal')), false);
}

/** The processes of this cloud's server, whatever their current parent. */
function serversOf(cloud: CloudProcess): number[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return pids.map(Number).filter((pid) => {
    try {
      const isServer = readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('/main.js\0start');
      return isServer && readFileSync(`/proc/${pid}/environ`, 'utf8').includes(cloud.dataDir);
    } catch {
      return false; // it ended meanwhile, or is not ours
    }
  });
}

describe('npm start', () => {
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    test(`${signal} to npm ends the server too`, () =>
      withCloud(NPM_START, async (cloud) => {
        process.kill(cloud.pid, signal);
        await endsInOrder(cloud);
      }));
  }

  test('of a Ctrl+C the server hears from the terminal and from npm, and still lets requests finish', () =>
    withCloud(NPM_START, async (cloud) => {
      const socket = await openSocket(cloud.api);
      const head = 'POST /api/login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n';
      socket.write(`${head}Content-Length: 2\r\n\r\n{`);
      assert.ok(await answers(cloud), 'what came before was read');
      for (const server of serversOf(cloud)) process.kill(server, 'SIGINT');
      await eventually('the stop begins', () => cloud.output.includes('Stopping'));
      process.kill(cloud.pid, 'SIGINT');
      await eventually('npm passed it on', async () => !(await answers(cloud)));
      socket.write('}');
      assert.match(await readToEnd(socket), /^HTTP\/1\.1 400 /);
      await endsInOrder(cloud);
    }));
});

describe('SIGHUP', () => {
  test('of a terminal that closes stops the server in order', { skip }, () =>
    withCloud(inTerminal('bin/cloudlet start'), async (cloud) => {
      cloud.kill();
      await endsInOrder(cloud);
    }),
  );

  test('is not obeyed without a terminal, as nohup wants it', () =>
    withCloud(['bin/cloudlet', 'start'], async (cloud) => {
      process.kill(cloud.pid, 'SIGHUP');
      assert.ok(await answers(cloud));
      process.kill(cloud.pid, 'SIGTERM');
      await endsInOrder(cloud);
    }));
});
