/**
 * pgBackRest, as in Debian 13, stores backups and the WAL of a PostgreSQL in a bucket and restores from it.
 * It requires TLS, so a proxy is in front of the endpoint. Needs root. Litestream, the other program with a
 * set-up in the console, is in no release of Debian.
 */
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { type AddressInfo, connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { after, before, test } from 'node:test';
import { createServer, type Server } from 'node:tls';
import { notInstalled } from '../../scripts/installed.ts';
import { newS3, type S3Client } from '../acceptance/s3-kit.ts';
import { Client } from '../harness/client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { cannotMakeTree, makeTree } from './debian-tree.ts';

/** `PGBACKREST_TREE` names an existing tree, which is kept. */
const KEPT_TREE = process.env.PGBACKREST_TREE;
const RESTORE_MS = 600_000;
const skip = cannotMakeTree() || notInstalled('openssl');

let cloud: CloudProcess;
let tree: string;
let keys: string;
let proxy: Server;
let s3: S3Client;
before(async () => {
  if (skip !== false) return;
  tree = KEPT_TREE ?? mkdtempSync(join(tmpdir(), 'cloudlet-test-'));
  keys = mkdtempSync(join(tmpdir(), 'cloudlet-test-'));
  if (KEPT_TREE === undefined) makeTree(tree, { suite: 'trixie', packages: 'pgbackrest,postgresql' });
  cloud = await CloudProcess.start();
  s3 = await newS3(cloud.data, await new Client(cloud.api).newUser());
  await s3.ok('PUT', '/pgbackrest');
  proxy = await withTls(Number(new URL(cloud.data).port));
});
after(async () => {
  proxy?.close();
  await cloud?.stop();
  for (const folder of [keys, KEPT_TREE === undefined ? tree : undefined])
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
});

/** Ends TLS, and passes everything on to the port. */
async function withTls(port: number): Promise<Server> {
  const [key, cert] = [join(keys, 'key.pem'), join(keys, 'certificate.pem')];
  const made = [
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:prime256v1',
    '-nodes',
    '-subj',
    '/CN=localhost',
  ];
  execFileSync('openssl', ['req', '-x509', ...made, '-keyout', key, '-out', cert], { stdio: 'pipe' });
  const server = createServer({ key: readFileSync(key), cert: readFileSync(cert) }, (socket) => {
    // A client that disconnects is not an error.
    pipeline(socket, connect(port, '127.0.0.1'), socket).catch(() => {});
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server;
}

/** Enters the tree of $0 and runs $1 there. */
const ENTER = `set -e
mount -t proc proc "$0/proc"
mount --rbind /dev "$0/dev"
exec chroot "$0" bash -euc "$1"`;

const BACKUP = `cd /tmp
cat > /etc/pgbackrest.conf <<END
[global]
repo1-type=s3
repo1-path=/repo
repo1-s3-bucket=pgbackrest
repo1-s3-endpoint=localhost
repo1-s3-region=us-east-1
repo1-s3-uri-style=path
repo1-s3-key=$KEY
repo1-s3-key-secret=$SECRET
repo1-storage-host=127.0.0.1
repo1-storage-port=$PORT
repo1-storage-verify-tls=n
repo1-bundle=y
start-fast=y
[main]
pg1-path=/w/pg
pg1-port=5433
pg1-socket-path=/tmp
END
chmod 644 /etc/pgbackrest.conf
own() { runuser -u postgres -- "$@"; }
rest() { own pgbackrest --stanza=main --log-level-console=warn "$@"; }
server() { own /usr/lib/postgresql/*/bin/pg_ctl -D /w/pg -s -w -l /tmp/pg.log "$@"; }
sql() { own psql -qAt -h /tmp -p 5433 -c "$1" postgres; }
sum() { sql "select count(*), md5(string_agg(text, '' order by i)) from kept"; }
rm -rf /w/pg && install -d -o postgres -m 700 /w/pg
own /usr/lib/postgresql/*/bin/initdb -D /w/pg -A trust --no-locale > /dev/null
cat >> /w/pg/postgresql.conf <<END
port = 5433
listen_addresses = ''
unix_socket_directories = '/tmp'
archive_mode = on
archive_command = 'pgbackrest --stanza=main archive-push %p'
END
server start
rest stanza-create
sql 'create table kept as select i, md5(i::text) as text from generate_series(1, 100000) i'
rest --type=full backup
sql 'insert into kept select i, md5(i::text) from generate_series(100001, 150000) i'
rest --type=incr backup
sql "update kept set text = 'after the backups' where i % 1000 = 0"
BEFORE=$(sum)
server -m fast stop
rm -rf /w/pg && install -d -o postgres -m 700 /w/pg
rest restore
server start
while [ "$(sql 'select pg_is_in_recovery()')" = t ]; do sleep 0.2; done
test "$BEFORE" = "$(sum)"
rest check
rest verify --output=text
echo "restored $BEFORE"
server -m immediate stop`;

test('pgBackRest restores what was written after its backups too', { skip }, async () => {
  const { access_key_id: KEY, secret_access_key: SECRET } = s3.pair;
  const PORT = String((proxy.address() as AddressInfo).port);
  const env = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LANG: 'C.UTF-8', KEY, SECRET, PORT };
  mkdirSync(join(tree, 'w'), { recursive: true });
  const words = ['--mount', '--pid', '--fork', '--kill-child', 'bash', '-c', ENTER, tree, BACKUP];
  const child = spawn('unshare', words, { env, stdio: ['ignore', 'pipe', 'pipe'], timeout: RESTORE_MS });
  const [out, err, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close'),
  ]);
  assert.equal(code, 0, `${out}\n${err}`);
  assert.match(out, /^restored 150000\|[0-9a-f]{32}$/m);
  assert.match(
    (await s3.ok('GET', '/pgbackrest', { query: 'prefix=repo/' })).text,
    /<Key>repo\/backup\/main\//,
  );
});
