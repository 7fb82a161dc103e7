/** Strangers install the client from its tarball and use it, in JavaScript and in TypeScript. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { packSdk } from '../../scripts/pack-sdk.ts';
import { Client } from '../harness/client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';

const COMPILER = fileURLToPath(new URL('../../node_modules/.bin/tsc', import.meta.url));

let cloud: CloudProcess;
let folder = '';

before(async () => {
  cloud = await CloudProcess.start();
  folder = mkdtempSync(join(tmpdir(), 'cloudlet-client-'));
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
  const env = { ...process.env, npm_config_offline: 'true', npm_config_cache: join(folder, 'npm') };
  execFileSync('npm', ['install', '--silent', packSdk()], { cwd: folder, env });
});

after(async () => {
  rmSync(folder, { recursive: true, force: true });
  await cloud.stop();
});

test('it runs where nothing else is installed', async () => {
  const { api_key: key } = await new Client(cloud.api).register();
  const script = `
    import { CloudError, createCloud } from 'cloudlet-client';
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

test('its types say what is wrong, and nothing about what is right', () => {
  const options = [
    '--noEmit',
    '--strict',
    '--module',
    'nodenext',
    '--target',
    'es2024',
    '--lib',
    'es2024,esnext,dom',
  ];
  const check = (code: string) => {
    writeFileSync(join(folder, 'use.ts'), `import { createCloud } from 'cloudlet-client';\n${code}\n`);
    try {
      execFileSync(COMPILER, [...options, 'use.ts'], { cwd: folder, encoding: 'utf8' });
      return '';
    } catch (error) {
      return (error as { stdout: string }).stdout;
    }
  };
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
