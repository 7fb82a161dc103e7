/** The files of deploy/ name settings that exist, and give programs no more rights than they need. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { SETTINGS } from './settings.ts';

const FOLDER = fileURLToPath(new URL('../../deploy/', import.meta.url));
/** Placeholders of the proxies' recipes. */
const OF_PROXIES = ['CLOUDLET_API', 'CLOUDLET_API_PORT', 'CLOUDLET_DATA'];

test('each setting that a file of deploy/ names exists', () => {
  const known = new Set([...Object.values(SETTINGS).map(({ env }) => env), ...OF_PROXIES]);
  const files = readdirSync(FOLDER, { recursive: true, encoding: 'utf8' }).filter((name) =>
    statSync(join(FOLDER, name)).isFile(),
  );
  let count = 0;
  for (const name of files) {
    for (const [setting] of readFileSync(join(FOLDER, name), 'utf8').matchAll(/CLOUDLET_[A-Z0-9_]+/g)) {
      assert.ok(known.has(setting), `${name}: ${setting}`);
      count++;
    }
  }
  assert.ok(count > 30);
});

/** The services of a compose file by name, each with the parts of the file that it refers to. */
function servicesOf(file: string): Map<string, string> {
  const parts = readFileSync(join(FOLDER, file), 'utf8').split(/^(?=\S)/m);
  const anchors = new Map(parts.map((text) => [/^x-\S+: &(\S+)/.exec(text)?.[1], text]));
  const whole = (text: string): string =>
    text.replaceAll(/^ *<<: \*(\S+)$/gm, (_line, name) => whole(anchors.get(name) ?? ''));
  const services = parts.find((text) => text.startsWith('services:'))?.split(/^(?= {2}[a-z0-9-]+:$)/m) ?? [];
  const found = services.flatMap((text): [string, string][] => {
    const name = /^ {2}(\S+):$/m.exec(text)?.[1];
    return name === undefined || !/^ +(?:image|build):/m.test(whole(text)) ? [] : [[name, whole(text)]];
  });
  return new Map(found);
}

test('no container gains rights, and those of Cloudlet and its proxy change nothing but their data', () => {
  const services = ['compose.yaml', 'compose.cluster.yaml', 'compose.growth.yaml'].flatMap((file) =>
    [...servicesOf(file)].map(([name, text]) => ({ name: `${file}: ${name}`, text })),
  );
  assert.ok(services.length >= 8, services.map(({ name }) => name).join(', '));
  for (const { name, text } of services) {
    assert.match(text, /security_opt: \["no-new-privileges:true"\]/, name);
    if (/(?:metadata|objects)$/.test(name)) continue;
    for (const line of ['read_only: true', 'cap_drop: [ALL]'])
      assert.ok(text.includes(line), `${name}: ${line}`);
    // More rights are named one by one.
    assert.doesNotMatch(text, /^ *(?:privileged:|cap_add:.*SYS_(?:ADMIN|PTRACE))/m, name);
  }
});

test('the image has a user for who wants no root, and its base can be pinned', () => {
  const lines = readFileSync(join(FOLDER, 'Dockerfile'), 'utf8').split('\n');
  assert.ok(lines.some((line) => /^RUN useradd --system --uid 10001 .* cloudlet$/.test(line)));
  assert.ok(lines.some((line) => /^FROM \$\{NODE_IMAGE\}$/.test(line)));
  const chart = readFileSync(join(FOLDER, 'helm/cloudlet/templates/deployment.yaml'), 'utf8');
  for (const line of [
    'runAsNonRoot: true',
    'allowPrivilegeEscalation: false',
    'readOnlyRootFilesystem: true',
  ])
    assert.ok(chart.includes(line), line);
});

test('a base that is not pinned is told, and refused where pins are required', () => {
  const text = readFileSync(join(FOLDER, 'Dockerfile'), 'utf8').replaceAll('\\\n', ' ');
  const script = /^RUN (case "\$\{NODE_IMAGE\}" .*)$/m.exec(text)?.[1] ?? '';
  const build = (NODE_IMAGE: string, NODE_IMAGE_PINNED: string) => {
    const { status, stderr } = spawnSync('sh', ['-c', script], {
      env: { NODE_IMAGE, NODE_IMAGE_PINNED },
      encoding: 'utf8',
    });
    return [status, /pass --build-arg NODE_IMAGE=/.test(stderr)];
  };
  const tag = 'node:24-bookworm-slim';
  const pinned = `${tag}@sha256:${'0'.repeat(64)}`;
  assert.deepEqual(build(tag, 'wanted'), [0, true]);
  assert.deepEqual(build(tag, 'required'), [1, true]);
  for (const wish of ['wanted', 'required']) assert.deepEqual(build(pinned, wish), [0, false]);
  // An argument of before FROM counts behind it only when it is named again.
  assert.match(text, /^FROM .*\n\nARG NODE_IMAGE\n/m);
});

test('the unit says which rights Cloudlet has, and what stays of it', () => {
  const unit = readFileSync(join(FOLDER, 'cloudlet.service'), 'utf8').split('\n');
  const lines = [
    'UMask=0077',
    'NoNewPrivileges=yes',
    'ProtectSystem=strict',
    'ProtectHome=yes',
    'PrivateTmp=yes',
  ];
  // Otherwise it would not find its programs again, or remove the memory of servers that outlive it.
  const others = ['ProtectProc=default', 'RemoveIPC=no'];
  for (const line of [...lines, ...others]) assert.ok(unit.includes(line), line);
  const rights = unit.filter((line) => line.startsWith('CapabilityBoundingSet=')).join(' ');
  assert.doesNotMatch(rights, /SYS_PTRACE|SYS_MODULE|SYS_RAWIO|SYS_BOOT|~/);
  assert.match(rights, /CAP_SETUID/);
});
