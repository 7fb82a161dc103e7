/** The API reference: every curl example is run as printed. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { globSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { NO_POSTGRESQL, notInstalled } from '../../scripts/installed.ts';
import { CheckedClient } from '../harness/checked-client.ts';
import { ADMIN_KEY, CloudProcess } from '../harness/cloud-process.ts';
import { makeSetupLink } from '../harness/command.ts';
import { MailServer } from '../harness/mail-server.ts';
import { eventually } from '../harness/waiting.ts';
import { cannotRunGuests, idleImage, newVm } from './vms-kit.ts';

const mails = await new MailServer('cloud:secret').open();
after(() => mails.close());
const mailing = { CLOUDLET_SMTP_URL: mails.url, CLOUDLET_MAIL_FROM: 'A cloud <cloud@example.org>' };
const watched = new URL('../harness/entries-in-commits.ts', import.meta.url).href;
const command = [process.execPath, '--import', watched, 'server/main.ts', 'start'];
const cloud = await CloudProcess.start({ env: mailing, command });
after(() => cloud.stop());
const anyone = await CheckedClient.open(cloud.api);
const admin = anyone.as(ADMIN_KEY);

/** The folder of the commands: with the files that they name, and a curl that prints the status last. */
const folder = mkdtempSync(join(tmpdir(), 'cloudlet-test-'));
after(() => rmSync(folder, { recursive: true, force: true }));
writeFileSync(join(folder, '.curlrc'), 'silent\nmax-time = 120\nwrite-out = "\\n%{http_code}"\n');
for (const name of ['photo.jpg', '2026.zip.1', 'debian-12.qcow2']) writeFileSync(join(folder, name), 'bytes');
writeFileSync(join(folder, 'orders.csv'), 'id,total\n7,12\n');

interface Printed {
  readonly id: string;
  /** undefined: curl cannot make the call. */
  readonly curl: string | undefined;
}
interface Described {
  readonly operationId: string;
  readonly 'x-codeSamples'?: readonly { readonly label: string; readonly source: string }[];
}
const description = (await (await fetch(`${cloud.api}/api/openapi.json`)).json()) as {
  paths: Record<string, Record<string, Described>>;
};
const printed: readonly Printed[] = Object.values(description.paths)
  .flatMap((item) => Object.values(item))
  .map(({ operationId, 'x-codeSamples': samples = [] }) => {
    return { id: operationId, curl: samples.find(({ label }) => label === 'curl')?.source };
  });

/** A command line for bash with these variables: the status of its response, and the response. */
async function run(line: string, variables: Readonly<Record<string, string>>) {
  const env = { PATH: process.env.PATH, CURL_HOME: folder, CLOUD: cloud.api, ...variables };
  const shell = spawn('bash', ['-euc', line], { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [shell.stdout, shell.stderr])
    stream.setEncoding('utf8').on('data', (text) => (output += text));
  await new Promise((resolve) => shell.once('close', resolve));
  const end = output.lastIndexOf('\n');
  return { status: Number(output.slice(end + 1)), text: output.slice(0, end) };
}

/** The id of a new resource of the user, by its placeholder. */
const MAKERS: Readonly<Record<string, (user: CheckedClient, id: string) => Promise<string>>> = {
  OBJECT_ID: async (user) => {
    await user.expect(201, '/api/buckets', { json: { name: 'photos' } });
    return (await user.upload('photos', 'photo.jpg', 'bytes')).body.object_id;
  },
  VM_ID: async (user, id) => {
    idle ??= idleImage(admin);
    const path = await newVm(user, await idle);
    if (/deleteVm/i.test(id)) await user.expect(200, `${path}/stop?force=true`, POST);
    return path.split('/').at(-1) ?? '';
  },
  KEYID: async (user) => {
    return (await user.expect(201, '/api/encryption-keys', { json: { id: 'photos-key' } })).id;
  },
  ACCESS_KEY_ID: async (user) => {
    const json = { name: 'k', scopes: ['storage:read'] };
    return (await user.expect(201, '/api/account/access-keys', { json })).id;
  },
  SESSION_ID: async (user) => {
    const { username } = await user.expect(200, '/api/account');
    await user.expect(200, '/api/login', { json: { username, password: 'correct horse battery' } });
    return (await user.expect(200, '/api/account/sessions'))[0].id;
  },
  DATABASE_ID: async (user, id) => {
    // SQLite has no log.
    const engine = id === 'getDatabaseLog' ? 'postgresql' : 'sqlite';
    const made = await user.expect(201, '/api/databases', { json: { name: 'd', engine } });
    const path = `/api/databases/${made.database_id}`;
    if (id.endsWith('DatabaseRows')) {
      const statement = 'CREATE TABLE orders (id INTEGER PRIMARY KEY, total INTEGER)';
      await user.expect(200, `${path}/query`, { json: { statement, read_only: false } });
    }
    if (id === 'undeleteDatabase') await user.expect(200, path, { method: 'DELETE' });
    return made.database_id;
  },
  POINT_ID: async (_user, id) => {
    const points = '/api/disaster-recovery/points';
    if (id === 'restoreBucket') return (await admin.expect(201, `${points}?wait=60`, POST)).point_id;
    // One process serves all others: each holds all machines and databases of this file.
    sharedPoint ??= await admin.expect(201, `${points}?wait=60`, POST);
    const { point_id: made } = sharedPoint ?? assert.fail();
    const path = `${points}/${made}`;
    const isDeleted = (await admin.expect(200, path)).state === 'deleting';
    if (id === 'undeleteRecoveryPoint') await admin.expect(200, path, { method: 'DELETE' });
    else if (isDeleted) await admin.expect(200, `${path}/undelete`, POST);
    return made;
  },
  WEBHOOK_ID: async (user) => {
    return (await user.expect(201, '/api/webhooks', { json: { url: 'https://hooks.invalid/' } })).id;
  },
  OPERATION_ID: async (user) => {
    const call = { json: { name: 'later' }, headers: { prefer: 'respond-async' } };
    return (await user.expect(202, '/api/buckets', call)).operation_id;
  },
  CODE: async (user) => {
    const line = printed.find(({ id }) => id === 'approveLogin')?.curl ?? '';
    return JSON.parse((await run(line, { KEY: user.key ?? '' })).text).code;
  },
  USER_CODE: async (user) => (await user.expect(201, '/api/login/device', { json: PROGRAM })).user_code,
  DEVICE_CODE: async (user) => {
    const { device_code, user_code } = await user.expect(201, '/api/login/device', { json: PROGRAM });
    await user.expect(200, '/api/login/device/decide', { json: { user_code, approve: true } });
    return device_code;
  },
  RESET_TOKEN: async () => {
    const { id } = await anyone.register();
    const { url } = await admin.expect(201, `/api/admin/accounts/${id}/reset-link`, POST);
    return new URL(url).hash.slice('#token='.length);
  },
  INVITATION_TOKEN: async () => {
    const { url } = await admin.expect(201, '/api/admin/invitations', { json: {} });
    return new URL(url).hash.slice('#token='.length);
  },
  INVITATION_ID: async () => (await admin.expect(201, '/api/admin/invitations', { json: {} })).id,
  ACCOUNT_ID: async (_user, id) => {
    const { id: account, api_key: key } = await anyone.register();
    const remove = { json: { reason: 'Has left the class' } };
    if (id === 'adminKeepAccount') await admin.expect(200, `/api/admin/accounts/${account}/remove`, remove);
    if (id === 'adminMailResetLink')
      await anyone.expect(200, '/api/confirm-email', { json: { token: await confirmation(key) } });
    return String(account);
  },
  TOKEN: async () => await confirmation((await anyone.register()).api_key),
  SHARE_ID: async (user) => {
    await user.expect(201, '/api/buckets', { json: { name: 'photos' } });
    return (await user.expect(201, '/api/shares', { json: { bucket: 'photos', name: '2026/' } })).share_id;
  },
  NAME: async (user) => {
    const line = printed.find(({ id }) => id === 'addSshKey')?.curl ?? '';
    return JSON.parse((await run(line, { KEY: user.key ?? '' })).text).name;
  },
  IMAGE_ID: async () => {
    const body = new FormData();
    body.set('file', new Blob(['bytes']), 'x.qcow2');
    const { image_id } = await admin.expect(201, '/api/admin/images/upload', { body });
    await eventually('the import has ended', async () => {
      const images: { image_id: string; state: string }[] = await admin.expect(200, '/api/admin/images');
      return images.find((image) => image.image_id === image_id)?.state === 'failed';
    });
    return image_id;
  },
};
/** The token of the link mailed at registration, to confirm the address. */
async function confirmation(key: string): Promise<string> {
  const user = anyone.as(key);
  const { email } = await user.expect(200, '/api/account');
  const { text } = await mails.mailTo(email, (mail) => mail.text.includes('/confirm-email#'));
  return /#token=(\S+)/.exec(text)?.[1] ?? assert.fail('no link');
}

const POST = { method: 'POST' };
const PROGRAM = { name: 'CLI on laptop', scopes: ['storage:read'] };
let sharedPoint: { point_id: string } | undefined;
let idle: Promise<{ readonly image: string }> | undefined;

/** The preconditions of the command, and the variables in it. */
async function prepare({ id, curl = '' }: Printed, user: CheckedClient): Promise<Record<string, string>> {
  const variables: Record<string, string> = { KEY: user.key ?? '' };
  const named = new Set([...curl.matchAll(/\$([A-Z_]+)/g)].map(([, name]) => String(name)));
  // Before a recovery point that must contain it.
  if (/\/buckets\/photos|"bucket":"photos"/.test(curl))
    await user.expect(201, '/api/buckets', { json: { name: 'photos' } });
  for (const name of named) {
    const make = MAKERS[name];
    if (make) variables[name] = await make(user, id);
  }
  if (named.has('DELIVERY_ID')) {
    const { id: delivery } = await user.expect(201, `/api/webhooks/${variables.WEBHOOK_ID}/test`, POST);
    variables.DELIVERY_ID = delivery;
  }
  if (named.has('PORT_ID')) {
    const ports = `/api/vms/${variables.VM_ID}/ports`;
    variables.PORT_ID = (await user.expect(201, ports, { json: { port: 80 } })).port_id;
  }
  if (named.has('SNAPSHOT_ID')) {
    const snapshots = `/api/vms/${variables.VM_ID}/snapshots`;
    variables.SNAPSHOT_ID = (await user.expect(201, snapshots, { json: { name: 'before' } })).snapshot_id;
  }
  if (named.has('VERSION_ID')) {
    const { versions } = await user.expect(200, `/api/storage/${variables.OBJECT_ID}`);
    variables.VERSION_ID = versions[0].version_id;
  }
  if (named.has('UPLOAD_ID')) {
    const uploads = '/api/buckets/photos/uploads';
    const { upload_id: uploadId } = await user.expect(201, uploads, { json: { name: '2026.zip' } });
    const body = new FormData();
    body.set('file', new Blob(['bytes']), '2026.zip.1');
    await user.expect(200, `${uploads}/${uploadId}/parts/1`, { body });
    variables.UPLOAD_ID = uploadId;
  }
  if (curl.includes('/plans/pro')) await admin.call('/api/admin/plans', { json: { name: 'pro' } });
  if (id === 'login') await run(printed.find((call) => call.id === 'register')?.curl ?? '', {});
  return variables;
}

let reader: Promise<CheckedClient> | undefined;
/** A new one, because most examples need and change resources; read-only ones share one. */
function userOf(curl: string): Promise<CheckedClient> {
  const make = async () => anyone.as((await anyone.register()).api_key);
  if (/ -[XdFT] | --(?:json|data|form|upload)|\$(?!CLOUD\b|KEY\b)|photos/.test(curl)) return make();
  reader ??= make();
  return reader;
}

/** They have their own tests. */
const OF_OTHER_CLOUDS: ReadonlySet<string> = new Set(['setUp', 'requestRegistration']);

describe('every example does what it says', () => {
  const skipped = cannotRunGuests();
  const needsGuest = new Set(['startVm']);
  const noPostgresql = globSync('build/programs/postgresql-*/usr').length === 0 && NO_POSTGRESQL;
  // The one that needs a PostgreSQL server comes last: points would contain its data.
  const needsServer = ({ id }: Printed) => Number(id === 'getDatabaseLog');
  for (const call of printed.toSorted((a, b) => needsServer(a) - needsServer(b))) {
    const { curl, id } = call;
    if (curl === undefined || OF_OTHER_CLOUDS.has(id)) continue;
    const skip =
      notInstalled('curl', 'bash') ||
      (needsGuest.has(id) && skipped) ||
      (id === 'getDatabaseLog' && noPostgresql);
    test(id, { skip }, async () => {
      const { operation } =
        anyone.declaration.operations.find((entry) => entry.operation.operationId === id) ?? {};
      assert.ok(operation);
      const isAdmin = operation['x-permission']?.startsWith('admin') === true;
      const user = isAdmin ? admin : await userOf(curl);
      const { status, text } = await run(curl, await prepare(call, user));
      assert.equal(status, Number(Object.keys(operation.responses)[0]), `${curl}\n${text}`);
    });
  }

  test('setUp', { skip: notInstalled('curl', 'bash') }, async () => {
    const fresh = await CloudProcess.start({ env: { CLOUDLET_ADMIN_KEY: '' } });
    try {
      const token = new URL(await makeSetupLink(fresh.dataDir)).searchParams.get('token') ?? '';
      const line = printed.find(({ id }) => id === 'setUp')?.curl ?? '';
      const { status, text } = await run(line, { CLOUD: fresh.api, SETUP_TOKEN: token });
      assert.equal(status, 201, text);
    } finally {
      await fresh.stop();
    }
  });

  test('requestRegistration', { skip: notInstalled('curl', 'bash') }, async () => {
    const env = { ...mailing, CLOUDLET_REGISTRATION: 'domain:example.org' };
    const fresh = await CloudProcess.start({ env });
    try {
      const line = printed.find(({ id }) => id === 'requestRegistration')?.curl ?? '';
      const { status, text } = await run(line, { CLOUD: fresh.api });
      assert.equal(status, 200, text);
    } finally {
      await fresh.stop();
    }
  });

  test('whatever a call changed was committed together with its entry in the audit log', () => {
    // They start or do work of this process, step by step.
    const stepwise = /^entry of (?:rotateMasterKey|verifyRecoveryPoint|drillRecoveryPoint|startScrub) /;
    const apart = cloud.output.split('\n').filter((line) => / apart from /.test(line));
    assert.ok(
      apart.some((line) => line.startsWith('entry of rotateMasterKey ')),
      'commits are watched',
    );
    assert.deepEqual(
      apart.filter((line) => !stepwise.test(line)),
      [],
    );
  });

  test('each call has one, but for those where curl is of no use', () => {
    const ids = anyone.declaration.operations.map(({ operation }) => operation.operationId);
    assert.deepEqual(printed.map(({ id }) => id).sort(), ids.sort());
    const without = printed.filter(({ curl }) => curl === undefined).map(({ id }) => id);
    const ofOperators = ['adminCreateSetupLink', 'cancelRecoveryPoint', 'confirmRecoveryKey'];
    const ofClusters = ['adminDrainNode', 'adminForgetNode', 'adminResumeNode'];
    const ofPages = ['confirmPassword', 'openConsole'];
    const ofQueries = ['cancelDatabaseQuery', 'deleteSavedQuery'];
    const sockets = ['openDatabaseTunnel', 'openVmTunnel', 'watchUpdates'];
    const wanted = [...ofOperators, ...ofClusters, ...ofPages, ...ofQueries, ...sockets];
    assert.deepEqual(without.sort(), wanted.sort());
  });
});
