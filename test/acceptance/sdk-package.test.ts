/** An installation of the SDK from the cloud and its use, in JavaScript and in TypeScript. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Client } from '../harness/client.ts';
import type { CloudProcess } from '../harness/cloud-process.ts';
import { sharedCloud } from '../harness/shared-cloud.ts';

const COMPILER = fileURLToPath(new URL('../../node_modules/.bin/tsc', import.meta.url));

let cloud: CloudProcess;
let folder = '';

before(async () => {
  cloud = await sharedCloud();
  folder = mkdtempSync(join(tmpdir(), 'cloudlet-client-'));
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
  const env = { ...process.env, npm_config_offline: 'true', npm_config_cache: join(folder, 'npm') };
  // As npm does first with the address itself; offline it would not.
  const served = await fetch(`${cloud.api}/sdk/cloudlet-sdk.tgz`);
  writeFileSync(join(folder, 'cloudlet-sdk.tgz'), Buffer.from(await served.arrayBuffer()));
  execFileSync('npm', ['install', '--silent', './cloudlet-sdk.tgz'], { cwd: folder, env });
});

after(async () => {
  rmSync(folder, { recursive: true, force: true });
});

test('it runs where nothing else is installed', async () => {
  const { api_key: key } = await new Client(cloud.api).register();
  const script = `
    import { CloudError, createCloud } from 'cloudlet-sdk';
    const cloud = createCloud({ baseUrl: ${JSON.stringify(cloud.api)}, apiKey: ${JSON.stringify(key)} });
    await cloud.createBucket({ name: 'photos', versioning: true });
    const { object_id: id } = await cloud.uploadObject('photos', { name: 'note.txt', file: new Blob(['hello']) });
    const names = [];
    for await (const { name, size } of cloud.listObjects('photos')) names.push([name, size]);
    const text = await (await cloud.downloadObject(id)).text();
    const code = await cloud.getVm('vm-none').catch((error) => error instanceof CloudError && error.code);
    console.log(JSON.stringify({ names, text, code, link: cloud.urlOf('downloadObject', [id]).endsWith('/download') }));
  `;
  writeFileSync(join(folder, 'use.js'), script);
  const output = execFileSync(process.execPath, ['use.js'], { cwd: folder, encoding: 'utf8' });
  assert.deepEqual(JSON.parse(output), {
    names: [['note.txt', 5]],
    text: 'hello',
    code: 'vm_not_found',
    link: true,
  });
});

const OPTIONS = '--noEmit --strict --module nodenext --target es2024 --lib es2024,esnext,dom'.split(' ');

/** The compiler’s errors for a TypeScript program. */
function check(code: string): string {
  writeFileSync(join(folder, 'use.ts'), `import { createCloud } from 'cloudlet-sdk';\n${code}\n`);
  try {
    execFileSync(COMPILER, [...OPTIONS, 'use.ts'], { cwd: folder, encoding: 'utf8' });
    return '';
  } catch (error) {
    return (error as { stdout: string }).stdout;
  }
}

test('its types say what is wrong, and nothing about what is right', () => {
  const right = `const cloud = createCloud({ baseUrl: 'http://127.0.0.1' });
    const vm: { vm_id: string; state: string } = await cloud.createVm({ name: 'web', instance_type: 't2.micro' });
    const sizes: number[] = (await cloud.listObjects('photos', { prefix: 'a/' }).all()).map(({ size }) => size);
    export { sizes, vm };`;
  assert.equal(check(right), '');
  assert.match(check('export const vm = createCloud().createVm({ name: 1 });'), /error TS/);
  assert.match(
    check("export const vm = createCloud().creatVm({ name: 'web' });"),
    /did you mean 'createVm'/i,
  );
});

test('the sample of each operation in the OpenAPI document compiles', async () => {
  const { paths, servers } = (await (await fetch(`${cloud.api}/api/openapi.json`)).json()) as {
    paths: Record<string, Record<string, { 'x-codeSamples'?: { label: string; source: string }[] }>>;
    servers: unknown;
  };
  assert.deepEqual(servers, [{ url: cloud.api }]);
  const operations = Object.values(paths).flatMap((item) => Object.values(item));
  const samples = operations.flatMap((operation) =>
    (operation['x-codeSamples'] ?? []).filter(({ label }) => label === 'SDK'),
  );
  assert.ok(samples.length > 140, `${samples.length} of ${operations.length}`);
  const calls = samples.map(({ source }) => source).join('\n');
  const ids = new Set(
    [...calls.replace(/"[^"]*"/g, '""').matchAll(/(?<=[(,:] ?)[a-z]\w*(?=[,)}])/g)].map(String),
  );
  for (const known of ['true', 'false', 'null']) ids.delete(known);
  const declared = [...ids].map((name) => `declare const ${name}: string;`).join('\n');
  assert.equal(check(`${declared}\nconst cloud = createCloud();\n${calls}\nexport {};`), '');
});
