/** The private network of an account: its machines reach each other by name, those of others do not. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { connect } from 'node:net';
import { after, before, test } from 'node:test';
import { MongoClient } from 'mongodb';
import { createConnection } from 'mysql2/promise';
import { Client as Postgresql } from 'pg';
import { CheckedClient } from '../harness/checked-client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { eventually } from '../harness/waiting.ts';
import { md5Of, newS3, newS3Bucket, S3Client } from './s3-kit.ts';
import { cannotRunGuests, NEW_VM, newVm, removeAll } from './vms-kit.ts';

const skip = cannotRunGuests();
/** A shell of the guest for the test, and connections through the guest to its databases. */
const [SHELL, DATABASE, MYSQL, MONGODB] = [9000, 9001, 9002, 9003];
const GUEST = `#!/bin/sh
nc -ll -p ${SHELL} -e sh &
nc -ll -p ${DATABASE} -e nc shop.db.internal 5432 &
nc -ll -p ${MYSQL} -e nc cart.db.internal 3306 &
nc -ll -p ${MONGODB} -e nc notes-2.db.internal 27017 &
`;
const MACHINE = { user_data: GUEST, ports: [SHELL, DATABASE, MYSQL, MONGODB] };
const MARK = 'that was all';
const SSH_KEY = `AAAAC3NzaC1lZDI1NTE5AAAAI${'A'.repeat(43)}`;

interface Machine {
  readonly path: string;
  readonly ip: string;
}

const cloud = await CloudProcess.start();
const anyone = await CheckedClient.open(cloud.api);
let owner: CheckedClient;
let stranger: CheckedClient;
let web: Machine;
let other: Machine;
let theirs: Machine;

before(async () => {
  if (skip) return;
  [owner, stranger] = [
    anyone.as((await anyone.register()).api_key),
    anyone.as((await anyone.register()).api_key),
  ];
  [web, other, theirs] = await Promise.all([
    started(owner, { name: 'web-1' }),
    started(owner, { name: 'db-1' }),
    started(stranger, { name: 'web-1' }),
  ]);
});
after(async () => {
  if (!skip) for (const user of [owner, stranger]) await removeAll(user);
  await cloud.stop();
});

async function started(user: CheckedClient, more: object): Promise<Machine> {
  const path = await newVm(user, { ...MACHINE, ...more });
  const { ip_address: ip } = await user.expect(200, `${path}/start`, { method: 'POST' });
  await eventually('the shell of the guest', async () => (await said(ip, 'echo up')) === 'up');
  return { path, ip };
}

/** The output of a command in the guest; '' while no program listens there. */
function said(ip: string, command: string): Promise<string> {
  return new Promise((resolve) => {
    let text = '';
    const socket = connect({ host: ip, port: SHELL, timeout: 30_000 });
    const end = () => {
      socket.destroy();
      resolve(text.replace(MARK, '').trim());
    };
    socket.write(`(${command}) 2>&1; echo ${MARK}\n`);
    socket.setEncoding('latin1').on('data', (piece: string) => {
      text += piece;
      if (text.includes(MARK)) end();
    });
    socket.on('error', end).on('timeout', end).on('close', end);
  });
}

async function hasEngine(engine: string): Promise<boolean> {
  const engines = await anyone.expect(200, '/api/database-engines');
  return engines.some(
    (one: { engine: string; available: boolean }) => one.engine === engine && one.available,
  );
}

const inWeb = (command: string) => said(web.ip, command);
const inTheirs = (command: string) => said(theirs.ip, command);

test('a machine reaches a database of its account by name, with a real log-in', { skip }, async () => {
  const { connection } = await owner.expect(201, '/api/databases', {
    json: { name: 'shop', engine: 'postgresql' },
  });
  assert.match(await inWeb('nslookup shop.db.internal'), /Address:? .*10\.64\.0\.\d+/);
  const uri = new URL(connection.uri);
  uri.host = `${web.ip}:${DATABASE}`;
  const client = new Postgresql({ connectionString: uri.href });
  await client.connect();
  const { rows } = await client.query('SELECT 40 + 2 AS sum');
  assert.deepEqual(rows, [{ sum: 42 }]);
  await client.end();
});

test('a machine reaches MariaDB by name, and another account has neither name nor address', {
  skip: skip || !(await hasEngine('mysql')),
}, async () => {
  const { connection } = await owner.expect(201, '/api/databases', {
    json: { name: 'cart', engine: 'mysql' },
  });
  const uri = new URL(connection.uri);
  uri.host = `${web.ip}:${MYSQL}`;
  const client = await createConnection(uri.href);
  assert.deepEqual((await client.query('SELECT 6 * 7 AS answer'))[0], [{ answer: 42 }]);
  await client.end();
  await closedToOthers('cart', 3306, { says: /mysql_native_password|MariaDB/ });
});

test('a machine reaches MongoDB by name, and another account has neither name nor address', {
  skip,
}, async () => {
  const json = { name: 'notes-2', engine: 'mongodb' };
  const { connection } = await owner.expect(201, '/api/databases', { json });
  const uri = new URL(connection.uri);
  uri.host = `${web.ip}:${MONGODB}`;
  uri.searchParams.set('directConnection', 'true');
  const client = await MongoClient.connect(uri.href);
  await client.db().collection('t').insertOne({ a: 1 });
  assert.equal(await client.db().collection('t').countDocuments(), 1);
  await client.close();
  await closedToOthers('notes-2', 27017);
});

/** The other account's machine knows the address of the owner's database as well as its own name server's. */
async function closedToOthers(name: string, port: number, { says }: { says?: RegExp } = {}): Promise<void> {
  assert.match(await inTheirs(`nslookup ${name}.db.internal`), /can't find|NXDOMAIN/);
  const found = await inWeb(`nslookup ${name}.db.internal`);
  const [, address = ''] = /Name:.*Address:? .*(10\.64\.0\.\d+)/s.exec(found) ?? [];
  const ask = `nc -w 3 ${address} ${port} </dev/null && echo open`;
  const [own, theirOwn] = [await inWeb(ask), await inTheirs(ask)];
  assert.match(own, /open/);
  if (says !== undefined) assert.match(own, says);
  assert.doesNotMatch(theirOwn, /open/);
}

test('a machine is told the keys that are lent to it, and no other machine is', { skip }, async () => {
  const public_key = `ssh-ed25519 ${SSH_KEY}`;
  const ask = 'wget -q -O - http://10.64.0.1/ssh-keys';
  const { expires_at } = await owner.expect(200, `${web.path}/ssh-keys`, { json: { public_key } });
  assert.ok(expires_at !== null);
  assert.equal(await inWeb(ask), `${public_key} cloudlet-lent`);
  assert.equal(await said(other.ip, ask), '');
  assert.equal(await inTheirs(ask), '');
  await stranger.refused(404, 'vm_not_found', [`${web.path}/ssh-keys`, { json: { public_key } }]);
  for (const bad of ['', 'ssh-ed25519 AAAA', `command="id" ${public_key}`, `${public_key}\n${public_key}`])
    await owner.refused(400, 'invalid_request', [`${web.path}/ssh-keys`, { json: { public_key: bad } }]);
  assert.match(await inWeb('wget -O - http://10.64.0.1/ 2>&1'), /404/);
});

test('a machine reads an object by the name of the S3 endpoint, and by its bucket\u2019s', {
  skip,
}, async () => {
  const s3 = await newS3(cloud.data, owner);
  const bucket = await newS3Bucket(s3);
  const bytes = randomBytes(3_000_000);
  await s3.ok('PUT', `/${bucket}/three.bin`, { body: bytes });
  for (const [host, path] of [
    ['s3.internal', `/${bucket}/three.bin`],
    [`${bucket}.s3.internal`, '/three.bin'],
  ] as const) {
    const { target } = new S3Client(`http://${host}`, s3.pair).prepare('GET', path, { presigned: 60 });
    assert.equal(await inWeb(`wget -q -O - 'http://${host}${target}' | md5sum`), `${md5Of(bytes)}  -`);
  }
});

test('a machine reaches a SQLite database by name, over HTTP', { skip }, async () => {
  const { database_id } = await owner.expect(201, '/api/databases', { json: { name: 'notes' } });
  const path = `/api/databases/${database_id}`;
  const { connection } = await owner.expect(200, `${path}/credentials`);
  const body = '{"requests":[{"type":"execute","stmt":{"sql":"SELECT 40 + 2"}}]}';
  const url = `http://notes.db.internal${new URL(connection.uri).pathname}v2/pipeline`;
  const call = `wget -q -O - --header 'Authorization: Bearer ${connection.password}' --post-data '${body}' ${url}`;
  assert.match(await inWeb(call), /"value":"42"/);
});

test('machines of the account reach each other by name and by id, on every port', { skip }, async () => {
  const { vm_id, internal_name, private_ip } = await owner.expect(200, other.path);
  assert.equal(internal_name, 'db-1.internal');
  assert.match(private_ip, /^10\.(8\d|9[0-5])\.\d+\.\d+$/);
  await said(other.ip, 'nc -ll -p 7777 -e echo it is db-1 & true');
  for (const name of ['db-1', internal_name, `${vm_id}.internal`, private_ip]) {
    assert.equal(await inWeb(`nc -w 10 ${name} 7777 </dev/null`), 'it is db-1', name);
  }
  assert.match(await inWeb('ping -c 3 -W 5 db-1'), / 0% packet loss/);
  assert.match(await inWeb('nslookup nobody.internal'), /NXDOMAIN|can't find/);
});

test('a megabyte each way between machines arrives whole', { skip }, async () => {
  await said(other.ip, 'nc -l -p 7778 -e md5sum & true');
  const sums = await inWeb(
    'dd if=/dev/urandom of=/tmp/m bs=65536 count=160 2>/dev/null; md5sum </tmp/m; nc -w 10 db-1 7778 </tmp/m',
  );
  const [sent, arrived] = sums.split('\n');
  assert.match(sent ?? '', /^[0-9a-f]{32} /);
  assert.equal(arrived, sent);
});

test('another account reaches none of them, and sees its own machine of the same name', {
  skip,
}, async () => {
  const { private_ip } = await owner.expect(200, other.path);
  const { private_ip: own } = await stranger.expect(200, theirs.path);
  assert.equal(
    await inTheirs(`nc -w 3 ${private_ip} 7777 </dev/null`).then((text) => text.includes('db-1')),
    false,
  );
  assert.match(await inTheirs('nslookup web-1.internal'), new RegExp(own.replaceAll('.', '\\.')));
  assert.match(await inTheirs('nslookup db-1.internal'), /NXDOMAIN|can't find/);
});

test('a machine that takes the address of another gets nothing by it', { skip }, async () => {
  const { private_ip } = await owner.expect(200, other.path);
  const { private_ip: foreign } = await stranger.expect(200, theirs.path);
  for (const address of [foreign, '10.64.0.1', '10.90.9.9']) {
    const tried = `ip addr add ${address}/11 dev eth1; ping -c 1 -W 2 -I ${address} ${private_ip};
      ip addr del ${address}/11 dev eth1`;
    assert.match(await inWeb(tried), /100% packet loss/, address);
  }
  const mac = 'ip link set eth1 down; ip link set eth1 address 56:00:00:00:00:09; ip link set eth1 up';
  const back = await inWeb(`m=$(cat /sys/class/net/eth1/address); ${mac}; ping -c 1 -W 2 ${private_ip};
    ip link set eth1 down; ip link set eth1 address $m; ip link set eth1 up`);
  assert.match(back, /100% packet loss/);
  assert.match(await inWeb(`ping -c 3 -W 5 ${private_ip}`), / 0% packet loss/);
});

test('a port of this host is never meant', { skip }, async () => {
  const [api, data] = [new URL(cloud.api).port, new URL(cloud.data).port];
  // S3 answers at its own port as well, and nothing else of this host at any address of the network.
  for (const [address, port] of [
    ['10.64.0.1', api],
    ['10.64.0.1', data],
    ['10.64.0.2', api],
    ['10.64.0.2', '22'],
    ['10.64.0.0', '80'],
    ['10.64.0.3', '80'],
    ['10.79.255.255', '80'],
    ['10.95.255.254', '80'],
  ] as const) {
    assert.doesNotMatch(
      await inWeb(`nc -w 2 ${address} ${port} </dev/null && echo open`),
      /open/,
      `${address}:${port}`,
    );
  }
  assert.match(await inWeb(`nc -w 5 s3.internal ${data} </dev/null && echo open`), /open/);
});

test('a machine is given the URIs of databases that it asks for, and a real driver logs in by one', {
  skip,
}, async () => {
  const vm = { name: 'worker', databases: ['shop', 'notes'] };
  const worker = await started(owner, vm);
  const file = '/etc/cloudlet/databases.env';
  assert.equal(await said(worker.ip, `stat -c '%a %U' ${file}`), '600 root');
  const [shop, notes] = (await said(worker.ip, `. ${file}; echo "$SHOP_URL"; echo "$NOTES_URL"`)).split('\n');
  const uri = new URL(shop ?? '');
  assert.deepEqual([uri.hostname, uri.port], ['shop.db.internal', '5432']);
  uri.host = `${worker.ip}:${DATABASE}`;
  const client = new Postgresql({ connectionString: uri.href });
  await client.connect();
  assert.deepEqual((await client.query('SELECT current_database()')).rowCount, 1);
  await client.end();
  const { origin, pathname, searchParams } = new URL(notes ?? '');
  const header = `--header 'Authorization: Bearer ${searchParams.get('authToken')}'`;
  const body = '{"requests":[{"type":"close"}]}';
  const call = `wget -q -O - ${header} --post-data '${body}' ${origin}${pathname}v2/pipeline`;
  assert.match(await said(worker.ip, call), /"results"/);
  await owner.expect(200, `${worker.path}/stop?force=true`, { method: 'POST' });
  await owner.expect(200, worker.path, { method: 'DELETE' });
});

test('databases of others, and passwords that a key may not read, are given to no machine', {
  skip,
}, async () => {
  const ask = (json: object) => ['/api/vms', { json: { ...NEW_VM, ...json } }] as const;
  const nobody = await stranger.refused(400, 'invalid_request', [...ask({ databases: ['shop'] })]);
  assert.match(JSON.stringify(nobody), /databases\.0.*one of your databases/);
  const twice = await owner.refused(400, 'invalid_request', [...ask({ databases: ['a-b', 'a_b'] })]);
  assert.match(JSON.stringify(twice), /A_B_URL/);
  const scopes = ['compute:*', 'databases:read', 'databases:connect'];
  const { api_key } = await owner.expect(201, '/api/account/access-keys', { json: { name: 'k', scopes } });
  await owner.as(api_key).refused(403, 'scope_required', [...ask({ databases: ['shop'] })]);
});

test('another account has neither the name nor the address', { skip }, async () => {
  assert.match(await inTheirs('nslookup shop.db.internal'), /can't find|NXDOMAIN/);
  const [, address = ''] =
    /Name:.*Address:? .*(10\.64\.0\.\d+)/s.exec(await inWeb('nslookup shop.db.internal')) ?? [];
  const ask = `nc -w 3 ${address} 5432 </dev/null && echo open`;
  assert.match(await inWeb(ask), /open/);
  assert.doesNotMatch(await inTheirs(ask), /open/);
});

test('a machine that floods its network takes nothing from another account', { skip }, async () => {
  const { private_ip } = await stranger.expect(200, theirs.path);
  // Frames to its own network, missing names, and connections to closed ports.
  const flood = `(while :; do nslookup n$RANDOM.db.internal; done) >/dev/null 2>&1 & echo $! >>/tmp/flood
    (while :; do nc -w 1 10.64.0.99 5432 </dev/null; done) >/dev/null 2>&1 & echo $! >>/tmp/flood
    ping -f -s 8 ${private_ip.replace(/\d+$/, '250')} >/dev/null 2>&1 & echo $! >>/tmp/flood; sleep 1`;
  await inTheirs(flood);
  const s3 = await newS3(cloud.data, owner);
  const bucket = await newS3Bucket(s3);
  const bytes = randomBytes(1_000_000);
  await s3.ok('PUT', `/${bucket}/one.bin`, { body: bytes });
  const { target } = new S3Client('http://s3.internal', s3.pair).prepare('GET', `/${bucket}/one.bin`, {
    presigned: 600,
  });
  for (let round = 0; round < 5; round++) {
    assert.match(await inWeb('nslookup shop.db.internal'), /10\.64\.0\./);
    assert.equal(await inWeb(`wget -q -O - 'http://s3.internal${target}' | md5sum`), `${md5Of(bytes)}  -`);
    assert.match(await inWeb('ping -c 3 -W 5 db-1'), / 0% packet loss/);
  }
  await inTheirs('kill $(cat /tmp/flood)');
});

test('it comes back by itself after a restart of Cloudlet, and with a new run of a machine', {
  skip,
}, async () => {
  await said(web.ip, 'nc -ll -p 7779 -e echo it is web-1 & true');
  await cloud.crash();
  await cloud.start();
  const again = await CheckedClient.open(cloud.api);
  [owner, stranger] = [again.as(owner.key), again.as(stranger.key)];
  await eventually('the names', async () => /10\.64/.test(await inWeb('nslookup shop.db.internal')));
  await eventually(
    'the neighbour',
    async () => (await said(other.ip, 'nc -w 5 web-1 7779 </dev/null')) === 'it is web-1',
  );
  await owner.expect(200, `${other.path}/stop?force=true`, { method: 'POST' });
  assert.match(await inWeb('nslookup db-1.internal'), /NXDOMAIN|can't find/);
  await owner.expect(200, `${other.path}/start`, { method: 'POST' });
  await eventually('the neighbour again', async () =>
    / 0% packet loss/.test(await inWeb('ping -c 1 -W 5 db-1')),
  );
});

test('a connection ends with its database, which loses its name', { skip }, async () => {
  const listed = await owner.expect(200, '/api/databases');
  const { database_id } = listed.find(({ name }: { name: string }) => name === 'shop');
  const path = `/api/databases/${database_id}`;
  const { connection } = await owner.expect(200, `${path}/credentials`);
  const uri = new URL(connection.uri);
  uri.host = `${web.ip}:${DATABASE}`;
  const client = new Postgresql({ connectionString: uri.href });
  await eventually('a log-in', async () => {
    await client.connect();
    return true;
  });
  const ended = new Promise<void>((resolve) => client.on('error', () => resolve()).on('end', resolve));
  const address = /10\.64\.0\.\d+(?!.*10\.64\.0\.\d+)/s.exec(await inWeb('nslookup shop.db.internal'))?.[0];
  await owner.expect(200, path, { method: 'DELETE' });
  await ended;
  await eventually('its name is gone', async () =>
    /NXDOMAIN|can't find/.test(await inWeb('nslookup shop.db.internal')),
  );
  assert.doesNotMatch(await inWeb(`nc -w 3 ${address} 5432 </dev/null && echo open`), /open/);
});
