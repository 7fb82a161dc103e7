/** The output of a start: on a terminal, and elsewhere. */
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { CheckedClient } from '../harness/checked-client.ts';
import { CloudProcess, OWN_GROUND } from '../harness/cloud-process.ts';
import { inTerminal, cannotOpenTerminal as skip } from '../harness/terminal.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const root = mkdtempSync(join(tmpdir(), 'cloudlet-banner-'));
after(() => rmSync(root, { recursive: true, force: true }));

const NOBODY_YET = { CLOUDLET_ADMIN_KEY: '' };

async function withCloud(
  options: Parameters<typeof CloudProcess.start>[0],
  work: (cloud: CloudProcess) => Promise<void>,
): Promise<void> {
  const cloud = await CloudProcess.start(options);
  try {
    await work(cloud);
  } finally {
    await cloud.stop();
  }
}

/** As copied by a person on another computer. */
function runPrinted(cloud: CloudProcess, verb: string): string {
  const line = cloud.output.split('\n').find((candidate) => candidate.includes(verb)) ?? '';
  const command = line.slice(line.search(/\S*bin\/cloudlet/)).trim();
  assert.match(command, /^\//, cloud.output);
  return execFileSync('/bin/sh', ['-c', command], {
    cwd: '/',
    encoding: 'utf8',
    env: { PATH: process.env.PATH },
  });
}

async function makeAdministrator(cloud: CloudProcess, link: string): Promise<void> {
  const token = new URL(link).searchParams.get('token');
  const json = { token, username: 'chief', email: 'chief@example.org', password: 'correct horse battery' };
  await (await CheckedClient.open(cloud.api)).expect(201, '/api/setup', { json });
}

describe('without an administrator', () => {
  test('the link is printed on a terminal', { skip }, () =>
    withCloud({ command: inTerminal('bin/cloudlet start'), env: NOBODY_YET }, async (cloud) => {
      const [link = ''] = /http:\S+\/setup\?token=\S+/.exec(cloud.output) ?? [];
      await makeAdministrator(cloud, link);
      const dataDir = `--data-dir ${cloud.dataDir}`;
      assert.ok(cloud.output.includes(`with: bin/cloudlet admin create ${dataDir}\r\n`), cloud.output);
    }),
  );

  test('elsewhere no token is, but the commands, which work as they stand', () =>
    withCloud({ dataDir: join(root, "the operator's data"), env: NOBODY_YET }, async (cloud) => {
      assert.doesNotMatch(cloud.output, /token/);
      const [link = ''] = /http:\S+\/setup\?token=\S+/.exec(runPrinted(cloud, 'admin setup-link')) ?? [];
      assert.equal(new URL(link).origin, cloud.api);
      assert.match(runPrinted(cloud, 'admin create'), /^Administrator admin /);
    }));
});

describe('all that is printed has one format', () => {
  const printed = async (format: string, redirection: string) => {
    const data = mkdtempSync(join(root, 'format-'));
    const env = {
      PATH: process.env.PATH,
      CLOUDLET_DATA_DIR: data,
      CLOUDLET_PORT: '0',
      CLOUDLET_DATA_PORT: '0',
      CLOUDLET_VM_ACCEL: 'tcg',
      CLOUDLET_LOG_FORMAT: format,
      ...OWN_GROUND,
    };
    const started = spawn('/bin/sh', ['-c', `exec bin/cloudlet start ${redirection}`], { env, cwd: ROOT });
    let output = '';
    for (const stream of [started.stdout, started.stderr])
      stream.setEncoding('utf8').on('data', (piece: string) => {
        output += piece;
        if (/Ready in|"ready"/.test(output)) started.kill('SIGTERM');
      });
    await once(started, 'close');
    return output;
  };
  const json = (output: string) =>
    output
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));

  for (const [format, redirection] of [
    ['json', ''],
    ['auto', '2>&1'],
  ] as const) {
    test(`${format} ${redirection}: JSON`, async () => {
      const lines = json(await printed(format, redirection));
      const ready = lines.find(({ msg }) => msg === 'ready');
      assert.match(ready.api, /^http:\/\/127\.0\.0\.1:\d+\/api$/);
      assert.ok(lines.some(({ msg }) => /no administrator yet.*admin setup-link/s.test(msg)));
      assert.ok(lines.some(({ msg }) => /^stopping/.test(msg)));
      assert.doesNotMatch(JSON.stringify(lines), /token/);
    });
  }

  test('text: text', async () => {
    const output = await printed('text', '2>&1');
    assert.match(output, /^Ready in /m);
    for (const line of output.split('\n')) assert.doesNotMatch(line, /^\{/);
  });
});

describe('who may register', () => {
  const json = { username: 'stranger', email: 'stranger@example.org', password: 'correct horse battery' };
  const byDefault = { CLOUDLET_REGISTRATION: 'auto' };
  const NOTE =
    /Registration is by invitation, because others can reach this cloud.*CLOUDLET_REGISTRATION=open/;

  for (const [what, env, policy] of [
    ['on loopback everyone', byDefault, 'open'],
    ['where others reach it, whoever is invited', { ...byDefault, CLOUDLET_HOST: '0.0.0.0' }, 'invitation'],
    ['where the operator says so, everyone', { CLOUDLET_HOST: '0.0.0.0' }, 'open'],
  ] as const) {
    test(what, () =>
      withCloud({ env }, async (cloud) => {
        const client = await CheckedClient.open(cloud.api);
        assert.equal((await client.expect(200, '/api')).registration, policy);
        if (policy === 'open') await client.expect(201, '/api/register', { json });
        else await client.refused(403, 'registration_closed', ['/api/register', { json }]);
        const isSaid = policy === 'invitation';
        assert.equal(NOTE.test(cloud.output), isSaid, cloud.output);
      }),
    );
  }
});

describe('others on the network', () => {
  const WARNING =
    /Warning: other machines can reach these ports, .*\n.*CLOUDLET_PUBLIC_URL and CLOUDLET_DATA_URL/;
  const everywhere = { CLOUDLET_HOST: '0.0.0.0' };
  const urls = (url: string) => ({ CLOUDLET_PUBLIC_URL: url, CLOUDLET_DATA_URL: url });

  for (const [what, env, isWarned] of [
    ['on loopback nobody is warned of them', {}, false],
    ['beyond loopback without TLS', everywhere, true],
    [
      'beyond loopback with only the API behind TLS',
      { ...everywhere, CLOUDLET_PUBLIC_URL: 'https://a.example' },
      true,
    ],
    ['behind a proxy without TLS', { ...everywhere, ...urls('http://cloud.example') }, true],
    ['behind a proxy with TLS nobody is warned', { ...everywhere, ...urls('https://cloud.example') }, false],
    [
      'in a container whose ports are published on loopback',
      { ...everywhere, ...urls('http://127.0.0.1:8080') },
      false,
    ],
  ] as const) {
    test(what, () =>
      withCloud({ env }, async ({ output }) => {
        if (isWarned) assert.match(output, WARNING);
        else assert.doesNotMatch(output, /other machines/);
        const isNamed = output.includes('From other machines, use the name or address of this host');
        assert.equal(isNamed, env === everywhere);
      }),
    );
  }
});
