/** The files of deploy/ use existing settings, and give programs no more rights than necessary. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { SETTINGS } from './settings.ts';

const FOLDER = fileURLToPath(new URL('../../deploy/', import.meta.url));
/** Placeholders in the proxy configurations. */
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

/** The services of a compose file by name, each with the referenced parts of the file. */
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

test('no container gains rights, or changes anything but its data', () => {
  const services = ['compose.yaml', 'compose.cluster.yaml', 'compose.growth.yaml'].flatMap((file) =>
    [...servicesOf(file)].map(([name, text]) => ({ name: `${file}: ${name}`, text })),
  );
  assert.ok(services.length >= 8, services.map(({ name }) => name).join(', '));
  for (const { name, text } of services) {
    assert.match(text, /security_opt: \["no-new-privileges:true"\]/, name);
    for (const line of ['read_only: true', 'cap_drop: [ALL]'])
      assert.ok(text.includes(line), `${name}: ${line}`);
    // The default user of the image is not root: services that need root declare it.
    if (/cloudlet$|host$|front-\d$/.test(name)) assert.match(text, /^ +user: "0:0"$/m, name);
    // Additional rights are listed one by one.
    assert.doesNotMatch(text, /^ *(?:privileged:|cap_add:.*SYS_(?:ADMIN|PTRACE))/m, name);
  }
});

test('the image runs as a user who is not root and owns its data, and its base is pinned', () => {
  const lines = readFileSync(join(FOLDER, 'Dockerfile'), 'utf8').replaceAll('\\\n', ' ').split('\n');
  const at = (pattern: RegExp) => {
    const found = lines.findIndex((line) => pattern.test(line));
    assert.notEqual(found, -1, String(pattern));
    return found;
  };
  const made = at(/^RUN useradd --system --uid 10001 .* cloudlet +&& install .*--owner cloudlet .* \/data$/);
  const volume = at(/^VOLUME \/data$/);
  // Instructions after VOLUME no longer change the owner of a new volume.
  assert.ok(made < volume);
  assert.deepEqual(lines.filter((line) => line.startsWith('USER ')).at(-1), 'USER cloudlet');
  assert.ok(
    at(/^USER cloudlet$/) > at(/^RUN node scripts\/setup\.js/),
    'the set-up installs packages as root',
  );
  assert.ok(at(/^ARG NODE_IMAGE=node:24-bookworm-slim@sha256:[0-9a-f]{64}$/) < at(/^FROM \$\{NODE_IMAGE\}$/));
  const chart = readFileSync(join(FOLDER, 'helm/cloudlet/templates/deployment.yaml'), 'utf8');
  for (const line of [
    'runAsNonRoot: true',
    'allowPrivilegeEscalation: false',
    'readOnlyRootFilesystem: true',
  ])
    assert.ok(chart.includes(line), line);
});

test('each image of others that a compose file names is pinned by digest, unless the operator names one', () => {
  const files = readdirSync(FOLDER).filter((name) => /^compose.*\.yaml$/.test(name));
  const images = files.flatMap((name) =>
    [...readFileSync(join(FOLDER, name), 'utf8').matchAll(/^ +image: (.+)$/gm)].map(
      ([, image = '']) => image,
    ),
  );
  const others = images.filter((image) => image !== 'cloudlet');
  assert.ok(others.length >= 5, images.join(', '));
  for (const image of others)
    assert.match(image, /^\$\{[A-Z0-9]+_IMAGE:-[a-z0-9/]+:[\w.-]+@sha256:[0-9a-f]{64}\}$/);
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
  // An argument before FROM is only visible after it if it is declared again.
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
  // Otherwise it would not find its programs again, or would remove the memory of servers that outlive it.
  const others = ['ProtectProc=default', 'RemoveIPC=no'];
  for (const line of [...lines, ...others]) assert.ok(unit.includes(line), line);
  const rights = unit.filter((line) => line.startsWith('CapabilityBoundingSet=')).join(' ');
  assert.doesNotMatch(rights, /SYS_PTRACE|SYS_MODULE|SYS_RAWIO|SYS_BOOT|~/);
  assert.match(rights, /CAP_SETUID/);
});
